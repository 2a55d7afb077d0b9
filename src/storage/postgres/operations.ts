/** Every write. */
import type { AuditEvent } from '../../users/event.ts'
import type { Database } from './database.ts'
import { recordOfUser } from './event-operations.ts'
import { importOperations } from './import-operations.ts'
import { lastRequestOperations } from './last-request-operations.ts'
import { mailedTokenOperations } from './mailed-token-operations.ts'
import { sessionOperations } from './session-operations.ts'
import { userOperations } from './user-operations.ts'

export const operations = (database: Database) => ({
  ...userOperations(database),
  ...sessionOperations(database),
  ...mailedTokenOperations(database),
  ...lastRequestOperations(database),
  ...importOperations(database),

  async record(event: AuditEvent): Promise<void> {
    await database.run(recordOfUser(event))
  },
})
