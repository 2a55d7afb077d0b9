/** The writes of the service for the writer thread of SQLite, which imports this module. */
import type { Write } from '#storage/operations/write'
import type { Connection } from '#storage/sqlite/database'
import { isOwned, tablesOf } from '#storage/stored-feature'
import { prepareCleanUpOperations } from '../accounts/sqlite-clean-up.ts'
import { prepareImportOperations } from '../accounts/sqlite-imports.ts'
import { prepareLastRequestOperations } from '../auth/sqlite-last-requests.ts'
import type { AccountFeature } from './account-feature.ts'
import { prepareHotOperations } from './sqlite-hot-operations.ts'

export { operationsOf } from './operations.ts'

/** The writes that this engine runs by hand, because they are hot or have many rows. */
export const prepareHandWritten = (db: Connection, features: readonly AccountFeature[]) =>
  ({
    ...prepareHotOperations(db),
    ...prepareLastRequestOperations(db),
    ...prepareImportOperations(db, tablesOf(features).filter(isOwned)),
    ...prepareCleanUpOperations(db),
  }) satisfies Record<string, (...args: never[]) => Write<unknown>>

export type HandWritten = ReturnType<typeof prepareHandWritten>
