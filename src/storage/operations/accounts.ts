/** New accounts of operations that add more than a sign-up does. Sign-ups and imports: `hot-operations.ts` and `import-operations.ts` of each engine. */
import type { AuditEvent } from '#core/audit-log/event'
import type { Session } from '#core/auth/session'
import type { NewUser } from '#core/users/user'
import { USER_COLUMNS, userColumns } from '../rows.ts'
import { recordStatement } from './events.ts'
import { type Steps, unlessTaken } from './operation.ts'
import { parameters, valuesOf } from './parameters.ts'
import { addSessionStatement } from './sessions.ts'

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
