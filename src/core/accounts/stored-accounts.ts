/** New accounts of operations that add more than a sign-up does. Sign-ups and imports: `hot-operations.ts` and `import-operations.ts` of each engine. */

import { type Steps, unlessTaken } from '#storage/operations/operation'
import { parameters, valuesOf } from '#storage/operations/parameters'
import type { AuditEvent } from '../audit-log/event.ts'
import { recordStatement } from '../audit-log/stored-events.ts'
import type { Session } from '../auth/session.ts'
import { addSessionStatement } from '../auth/stored-sessions.ts'
import type { NewUser } from '../users/user.ts'
import { USER_COLUMNS, userColumns } from '../users/user-rows.ts'

/**
 * Adds a user with the first session.
 * @returns false if the e-mail is taken: the operation must then end without another statement.
 */
export function* addAccount(user: NewUser, session: Session, event: AuditEvent): Steps<boolean> {
  const added = yield* unlessTaken({
    text: `INSERT INTO users (${USER_COLUMNS.join(', ')}) VALUES (${parameters(USER_COLUMNS, 1)})`,
    values: valuesOf(USER_COLUMNS, userColumns(user)),
  })
  if (added === 'taken') return false
  yield addSessionStatement(session)
  yield recordStatement(event)
  return true
}
