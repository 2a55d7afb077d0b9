/** Every write, as the writer thread runs it. Each runs whole or not at all, in one transaction with others. */
import type { AuditEvent } from '../../audit-log/event.ts'
import { invalidatesNothing, type Write } from '../write.ts'
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

    record(event: AuditEvent): Write<void> {
      shared.recordOfUser(event)
      return invalidatesNothing(undefined)
    },

    /** Does nothing. Calls run in order, so everything before it is settled once it is. */
    barrier: (): Write<void> => invalidatesNothing(undefined),

    /** Does nothing itself, but makes its batch write a page, which shows whether the store takes writes. */
    prove: (): Write<void> => invalidatesNothing(undefined),
  } satisfies Record<string, (...args: never[]) => Write<unknown>>
}

export type Operations = ReturnType<typeof prepareOperations>
