/** What a failure of SQLite means for a request. */
import { ServiceError } from '../../errors.ts'
import { isMistake } from '../operations/feature-operation.ts'

/** @param cause is logged, never sent. */
export const storeError = (cause: unknown): ServiceError =>
  new ServiceError(isMistake(cause) ? 'internalError' : 'storeUnavailable', { cause })
