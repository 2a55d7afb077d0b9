/** Every write, as the writer thread runs it. Each runs whole or not at all, inside a transaction with others. */

import { prepareCleanUpOperations } from './clean-up.ts'
import type { Connection } from './database.ts'
import { prepareEmailTokenOperations } from './email-token-operations.ts'
import { prepareImportOperations } from './import-operations.ts'
import { prepareLastRequestOperations } from './last-request-operations.ts'
import { prepareSessionOperations } from './session-operations.ts'
import { prepareSharedStatements } from './shared-statements.ts'
import { prepareUserOperations } from './user-operations.ts'

/** Prepares the operations on the writer's connection. */
export const prepareOperations = (db: Connection) => {
  const shared = prepareSharedStatements(db)

  return {
    ...prepareUserOperations(db, shared),
    ...prepareSessionOperations(db, shared),
    ...prepareEmailTokenOperations(db, shared),
    ...prepareLastRequestOperations(db),
    ...prepareImportOperations(db, shared),
    ...prepareCleanUpOperations(db),
    record: shared.recordOfUser,

    /** Does nothing; who waits for it has waited for everything before it. */
    barrier(): void {},

    /** Does nothing either, but the batch that it is part of writes a page. */
    prove(): void {},
  }
}

export type Operations = ReturnType<typeof prepareOperations>
