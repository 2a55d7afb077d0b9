/** Writes of passwords. */
import { INVALIDATED_BY_PASSWORD_CHANGE } from '../../accounts/email-token.ts'
import type { AuditEvent } from '../../audit-log/event.ts'
import type { Session } from '../../auth/session.ts'
import type { User } from '../../users/user.ts'
import type { UserRefusal } from '../../users/user-store.ts'
import { refusalOf, type UserState } from '../refusals.ts'
import { invalidates, refusedFor } from '../write.ts'
import type { Database } from './database.ts'
import { record } from './event-operations.ts'
import { addSessionStatement, REVOKE_SESSIONS } from './session-operations.ts'
import { lockedColumns } from './user-locks.ts'
import { readChanged } from './user-operations.ts'

const REHASH = 'UPDATE users SET password_hash = $1 WHERE id = $2 AND password_hash = $3'

/** Returns the {@link UserState}, if the user exists. */
const SET_HASH = `WITH found AS (
    SELECT key, ${lockedColumns(4)} FROM users WHERE id = $3 FOR NO KEY UPDATE
  ), changed AS (
    UPDATE users SET password_hash = $1, updated_at = $2, version = version + 1
    FROM found WHERE users.key = found.key AND found.disabled = 0 AND found.verified
  )
  SELECT disabled, verified FROM found`

/** Pending links that a changed password invalidates. */
const DELETE_INVALIDATED_TOKENS = `DELETE FROM email_tokens
  WHERE user_key = (SELECT key FROM users WHERE id = $1) AND purpose = ANY($2)`

export const passwordOperations = (database: Database) => ({
  async rehash(userId: string, from: string, to: string): Promise<void> {
    await database.writeUncached({ name: 'rehash', text: REHASH, values: [to, userId, from] })
  },

  async changePassword(
    session: Session,
    verifiedHash: string,
    newHash: string,
    event: AuditEvent,
  ): Promise<User | UserRefusal> {
    const { userId } = session
    return database.transaction<User | UserRefusal>(async run => {
      const values = [newHash, event.at, userId, verifiedHash]
      const [user] = await run<UserState>({ text: SET_HASH, values })
      const refused = refusalOf(user, { onlyEnabled: true })
      if (refused !== null) return refusedFor(userId, refused)
      await run({ text: DELETE_INVALIDATED_TOKENS, values: [userId, INVALIDATED_BY_PASSWORD_CHANGE] })
      await run({ text: REVOKE_SESSIONS, values: [userId, null] })
      await run(addSessionStatement(session))
      await run(record(event))
      return invalidates(userId, await readChanged(run, userId))
    })
  },
})
