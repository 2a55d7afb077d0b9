/** Every write except clean-up and rate limits. */
import type { AuditEvent } from '../../audit-log/event.ts'
import type { Database } from './database.ts'
import { emailTokenOperations } from './email-token-operations.ts'
import { recordIfUserExists } from './event-operations.ts'
import { importOperations } from './import-operations.ts'
import { lastRequestOperations } from './last-request-operations.ts'
import { passwordOperations } from './password-operations.ts'
import { sessionOperations } from './session-operations.ts'
import { userOperations } from './user-operations.ts'

export const operations = (database: Database) => ({
  ...userOperations(database),
  ...sessionOperations(database),
  ...passwordOperations(database),
  ...emailTokenOperations(database),
  ...lastRequestOperations(database),
  ...importOperations(database),

  async record(event: AuditEvent): Promise<void> {
    await database.writeUncached(recordIfUserExists(event))
  },
})
