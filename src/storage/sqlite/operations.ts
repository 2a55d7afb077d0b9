/**
 * Every write that the writer thread can run. Each has its own savepoint in the transaction of its batch, so a write that fails
 * leaves nothing behind.
 */
import type { AuditEvent } from '../../audit-log/event.ts'
import { invalidatesNothing, type Write } from '../write.ts'
import { prepareCleanUpOperations } from './clean-up.ts'
import type { Connection } from './database.ts'
import { prepareEmailTokenOperations } from './email-token-operations.ts'
import { prepareImportOperations } from './import-operations.ts'
import { prepareLastRequestOperations } from './last-request-operations.ts'
import { preparePasswordOperations } from './password-operations.ts'
import { prepareSessionOperations } from './session-operations.ts'
import { prepareSharedStatements } from './shared-statements.ts'
import { prepareUserOperations } from './user-operations.ts'

export const prepareOperations = (db: Connection) => {
  const shared = prepareSharedStatements(db)

  return {
    ...prepareUserOperations(db, shared),
    ...prepareSessionOperations(db, shared),
    ...preparePasswordOperations(db, shared),
    ...prepareEmailTokenOperations(db, shared),
    ...prepareLastRequestOperations(db),
    ...prepareImportOperations(db, shared),
    ...prepareCleanUpOperations(db),

    record(event: AuditEvent): Write<void> {
      shared.recordIfUserExists(event)
      return invalidatesNothing(undefined)
    },

    /** Does nothing. Calls run in order, so all earlier calls are settled when this one is. */
    barrier: (): Write<void> => invalidatesNothing(undefined),

    /** Does nothing itself. Its batch writes a page (the stamp), which shows whether the disk takes writes. */
    probe: (): Write<void> => invalidatesNothing(undefined),
  } satisfies Record<string, (...args: never[]) => Write<unknown>>
}

export type Operations = ReturnType<typeof prepareOperations>
