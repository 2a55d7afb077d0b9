/** Writes of sessions, and of the passwords that open them. */
import type { Session } from '../../auth/session.ts'
import type { AuditEvent } from '../../users/event.ts'
import type { User } from '../../users/user.ts'
import type { Database } from './database.ts'
import { recordAndNotify } from './event-operations.ts'
import { addSessionStatement, END_SESSION, END_SESSIONS, openSessionStatement } from './session-statements.ts'
import { readUser } from './user-operations.ts'

const REHASH = 'UPDATE users SET password_hash = $1 WHERE id = $2 AND password_hash = $3'

const SET_HASH = `UPDATE users SET password_hash = $1, updated_at = $2, version = version + 1
  WHERE id = $3 AND password_hash = $4 AND disabled = 0 RETURNING id`

/** What was mailed to reset the password or to change the e-mail: a verification stays good. */
const DROP_RESET_TOKENS = `DELETE FROM mailed_tokens
  WHERE user_key = (SELECT key FROM users WHERE id = $1) AND purpose <> 'verification'`

export const sessionOperations = (database: Database) => ({
  async openSession(session: Session, verifiedHash: string | null, event: AuditEvent): Promise<boolean> {
    return (await database.run(openSessionStatement(session, verifiedHash, event))).length === 1
  },

  async rehash(userId: string, from: string, to: string): Promise<void> {
    await database.run({ name: 'rehash', text: REHASH, values: [to, userId, from] })
  },

  async changePassword(
    session: Session,
    verifiedHash: string,
    newHash: string,
    event: AuditEvent,
  ): Promise<User | undefined> {
    const { userId } = session
    return database.transaction(async run => {
      const changed = await run({ text: SET_HASH, values: [newHash, event.at, userId, verifiedHash] })
      if (changed.length === 0) return undefined
      await run({ text: DROP_RESET_TOKENS, values: [userId] })
      await run({ text: END_SESSIONS, values: [userId, null] })
      await run(addSessionStatement(session))
      await run(recordAndNotify(event))
      return readUser(run, userId)
    })
  },

  async endSession(id: string, event: AuditEvent): Promise<boolean> {
    return database.transaction(async run => {
      if ((await run({ text: END_SESSION, values: [event.userId, id] })).length === 0) return false
      await run(recordAndNotify(event))
      return true
    })
  },

  async endSessions(exceptId: string | null, event: AuditEvent): Promise<boolean> {
    return database.transaction(async run => {
      // Whoever opens a session holds this lock: it is open already, or comes after.
      const found = await run({
        text: 'SELECT key FROM users WHERE id = $1 FOR NO KEY UPDATE',
        values: [event.userId],
      })
      if (found.length === 0) return false
      await run({ text: END_SESSIONS, values: [event.userId, exceptId] })
      await run(recordAndNotify(event))
      return true
    })
  },
})
