/** Changes of passwords. A reset is a sign-in (`stored-sign-ins.ts`), a removal that of a sign-in method (`stored-sign-in-methods.ts`). */

import {
  firstRow,
  type Query,
  query,
  type Statement,
  type Steps,
  USER_KEY,
} from '#storage/operations/operation'
import {
  endsAccess,
  invalidatesNothing,
  refusedFor,
  type UncachedWrite,
  type Write,
} from '#storage/operations/write'
import type { AuditEvent } from '../audit-log/event.ts'
import { recordStatement } from '../audit-log/stored-events.ts'
import type { Session } from '../auth/session.ts'
import {
  addSessionStatement,
  endImpersonationsOf,
  forgetNetworksStatement,
  type ProvedSession,
  revokeAllSessions,
} from '../auth/stored-sessions.ts'
import { deleteOwned, type OwnedTables } from '../users/owned-rows.ts'
import { refusalOf, type SessionRefusal } from '../users/refusals.ts'
import { RETURNING_USER } from '../users/stored-users.ts'
import type { User } from '../users/user.ts'
import { lockUser } from '../users/user-locks.ts'
import { toUser, type UserRow } from '../users/user-rows.ts'
import { invalidatedByPasswordChange } from './email-token.ts'
import { amrWithPassword } from './sign-in-methods.ts'

/** Invalidates what was mailed to a user whose password was changed or removed. */
export function* invalidateByPassword(
  mailed: OwnedTables['mailed'],
  { id, emailVerified }: Pick<User, 'id' | 'emailVerified'>,
): Steps<void> {
  yield {
    text: ({ isOneOf }) => `DELETE FROM email_tokens
      WHERE user_key = ${USER_KEY} AND ${isOneOf('purpose', '$2', 'text')}`,
    values: [id, invalidatedByPasswordChange(emailVerified)],
  }
  // Codes to sign in stay like resets: see `invalidatedByPasswordChange`.
  if (emailVerified) yield* deleteOwned(mailed, id)
}

export const passwordOperations = ({ mailed }: OwnedTables) => ({
  /** Replaces a password hash by a stronger one of the same password, if it is still `from`. */
  rehash: (userId: string, from: string, to: string): Query<UncachedWrite<void>> =>
    query(
      {
        name: 'rehash',
        text: 'UPDATE users SET password_hash = $1 WHERE id = $2 AND password_hash = $3',
        values: [to, userId, from],
      },
      () => invalidatesNothing(undefined),
    ),

  /**
   * Changes the password, or sets the first one, of an enabled user: ends all sessions, opens this one, and ends pending links.
   * @param session has the password in its `amr`, and gets what the acting session has proved besides.
   * @param acting the session that makes the change, and the verified current hash; `null` for none.
   */
  *changePassword(
    session: Session,
    acting: {
      readonly session: ProvedSession
      readonly passwordHash: string | null
    },
    newHash: string,
    event: AuditEvent,
  ): Steps<Write<User | SessionRefusal>> {
    const { userId } = session
    const update: Statement = {
      // Locks the table of users before the user, as `LOCK_USERS_TABLE` does.
      text: ({
        inTurn,
        forNoKeyUpdate,
      }) => `UPDATE users SET password_hash = $1, updated_at = $2, version = version + 1
        WHERE key = (
          SELECT key FROM users WHERE id = $3 AND ${inTurn('$3')} AND disabled = 0
            AND password_hash IS NOT DISTINCT FROM CAST($4 AS text)
            AND CASE WHEN factors LIKE '%totp%' THEN 1 ELSE 0 END = CAST($5 AS integer) ${forNoKeyUpdate}
        ) ${RETURNING_USER}`,
      values: [newHash, event.at, userId, acting.passwordHash, Number(acting.session.needsCode)],
    }
    let changed = yield* firstRow<UserRow>(update)
    if (changed === undefined) {
      const refused = refusalOf(yield* lockUser(userId, acting.passwordHash), { onlyEnabled: true })
      if (refused !== null) return refusedFor(userId, refused)
      // A concurrent change in between has made the update possible. The user is locked now.
      changed = yield* firstRow<UserRow>(update)
      if (changed === undefined) return refusedFor(userId, 'passwordChanged')
    }
    const user = toUser(changed)
    yield* invalidateByPassword(mailed, user)
    const revoked = yield* revokeAllSessions(userId)
    const former = revoked.find(({ id }) => id === acting.session.id)
    if (former === undefined) return refusedFor(userId, 'sessionNotFound')
    yield forgetNetworksStatement(userId)
    yield addSessionStatement({ ...session, amr: amrWithPassword(former.amr) })
    yield recordStatement(event)
    return endsAccess([userId, ...(yield* endImpersonationsOf(userId, revoked))], user)
  },
})
