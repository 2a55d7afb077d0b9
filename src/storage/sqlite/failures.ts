/** What a failure of SQLite means for a request. */
import { ServiceError } from '../../errors.ts'

/** Errors of a statement or of data, which a repeated request would meet again. Others are of the file, the disk or locks. */
const DEFECT = /^SQLITE_(?:CONSTRAINT|ERROR|MISMATCH|RANGE|TOOBIG|MISUSE|AUTH)/

/** @param cause is logged, never sent. */
export const storeError = (cause: unknown): ServiceError => {
  const { code } = cause as { code?: unknown }
  return new ServiceError(DEFECT.test(String(code)) ? 'internalError' : 'storeUnavailable', { cause })
}
