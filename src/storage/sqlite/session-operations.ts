/** Writes of sessions, and of the passwords that open them. */
import type { Session } from '../../auth/session.ts'
import type { AuditEvent } from '../../users/event.ts'
import type { User } from '../../users/user.ts'
import type { Connection } from './database.ts'
import { INSERT_SESSION, type SharedStatements, sessionParameters } from './shared-statements.ts'

export const prepareSessionOperations = (db: Connection, shared: SharedStatements) => {
  const { record, addSession, deleteSessions, readUser } = shared
  const addSessionIfUnchanged = db.prepare(
    `${INSERT_SESSION} AND disabled = 0 AND (@verifiedHash IS NULL OR password_hash = @verifiedHash)`,
  )
  const deleteSession = db.prepare(
    'DELETE FROM sessions WHERE id = ? AND user_key = (SELECT key FROM users WHERE id = ?)',
  )
  const setHash = db.prepare(
    `UPDATE users SET password_hash = ?, updated_at = ?, version = version + 1
     WHERE id = ? AND password_hash = ? AND disabled = 0`,
  )
  // What was mailed to reset the password or to change the e-mail: a verification stays good.
  const deleteResetTokens = db.prepare(
    `DELETE FROM mailed_tokens
     WHERE user_key = (SELECT key FROM users WHERE id = ?) AND purpose <> 'verification'`,
  )
  const replaceHash = db.prepare('UPDATE users SET password_hash = ? WHERE id = ? AND password_hash = ?')

  return {
    openSession(session: Session, verifiedHash: string | null, event: AuditEvent): boolean {
      if (addSessionIfUnchanged.run({ ...sessionParameters(session), verifiedHash }).changes === 0)
        return false
      record(event)
      return true
    },

    rehash(userId: string, from: string, to: string): void {
      replaceHash.run(to, userId, from)
    },

    changePassword(
      session: Session,
      verifiedHash: string,
      newHash: string,
      event: AuditEvent,
    ): User | undefined {
      const { userId } = session
      if (setHash.run(newHash, event.at, userId, verifiedHash).changes === 0) return undefined
      deleteResetTokens.run(userId)
      deleteSessions(userId, null)
      addSession(session)
      record(event)
      return readUser(userId)
    },

    endSession(id: string, event: AuditEvent): boolean {
      if (deleteSession.run(id, event.userId).changes === 0) return false
      record(event)
      return true
    },

    endSessions(exceptId: string | null, event: AuditEvent): boolean {
      if (readUser(event.userId) === undefined) return false
      deleteSessions(event.userId, exceptId)
      record(event)
      return true
    },
  }
}
