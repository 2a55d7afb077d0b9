/** Writes of sessions, and of the passwords that open them. */

import type { AuditEvent } from '../../audit-log/event.ts'
import type { Session } from '../../auth/session.ts'
import type { User } from '../../users/user.ts'
import type { UserRefusal } from '../../users/user-store.ts'
import { invalidates, invalidatesNothing } from '../write.ts'
import type { Database } from './database.ts'
import { record } from './event-operations.ts'
import { addSessionStatement, END_SESSION, END_SESSIONS, openSessionStatement } from './session-statements.ts'
import { type LockedUser, lockedColumns, lockUser, refusalOf } from './user-locks.ts'
import { readChanged } from './user-operations.ts'

const REHASH = 'UPDATE users SET password_hash = $1 WHERE id = $2 AND password_hash = $3'

/** Gives the {@link LockedUser}, if there is one. */
const SET_HASH = `WITH found AS (
    SELECT key, ${lockedColumns(4)} FROM users WHERE id = $3 FOR NO KEY UPDATE
  ), changed AS (
    UPDATE users SET password_hash = $1, updated_at = $2, version = version + 1
    FROM found WHERE users.key = found.key AND found.disabled = 0 AND found.verified
  )
  SELECT disabled, verified FROM found`

/** What was mailed to reset the password or to change the e-mail: a verification stays good. */
const DROP_RESET_TOKENS = `DELETE FROM email_tokens
  WHERE user_key = (SELECT key FROM users WHERE id = $1) AND purpose <> 'verification'`

export const sessionOperations = (database: Database) => ({
  async openSession(
    session: Session,
    verifiedHash: string | null,
    event: AuditEvent,
  ): Promise<'opened' | UserRefusal> {
    const [user] = await database.writeUncached<LockedUser>(
      openSessionStatement(session, verifiedHash, event),
    )
    return refusalOf(user) ?? 'opened'
  },

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
      const [user] = await run<LockedUser>({ text: SET_HASH, values })
      const refused = refusalOf(user)
      if (refused !== null) return invalidatesNothing(refused)
      await run({ text: DROP_RESET_TOKENS, values: [userId] })
      await run({ text: END_SESSIONS, values: [userId, null] })
      await run(addSessionStatement(session))
      await run(record(event))
      return invalidates(userId, await readChanged(run, userId))
    })
  },

  async endSession(id: string, event: AuditEvent): Promise<'ended' | 'sessionNotFound' | UserRefusal> {
    return database.transaction<'ended' | 'sessionNotFound' | UserRefusal>(async run => {
      const statement = { text: END_SESSION, values: [event.userId, id] }
      const [user] = await run<LockedUser & { ended: boolean }>(statement)
      const refused = refusalOf(user)
      if (refused !== null) return invalidatesNothing(refused)
      if (!user?.ended) return invalidatesNothing('sessionNotFound')
      await run(record(event))
      return invalidates(event.userId, 'ended')
    })
  },

  async endSessions(
    exceptId: string | null,
    event: AuditEvent,
    onlyEnabled: boolean,
  ): Promise<'ended' | UserRefusal> {
    return database.transaction<'ended' | UserRefusal>(async run => {
      // Whoever opens a session holds this lock: it is open already, or comes after.
      const refused = refusalOf(await lockUser(run, event.userId), onlyEnabled)
      if (refused !== null) return invalidatesNothing(refused)
      await run({ text: END_SESSIONS, values: [event.userId, exceptId] })
      await run(record(event))
      return invalidates(event.userId, 'ended')
    })
  },
})
