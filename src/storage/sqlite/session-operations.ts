/** Writes of sessions, and of the passwords that users sign in with. */
import { INVALIDATED_BY_PASSWORD_CHANGE } from '../../accounts/email-token.ts'
import type { AuditEvent } from '../../audit-log/event.ts'
import type { Session } from '../../auth/session.ts'
import type { User } from '../../users/user.ts'
import type { UserRefusal } from '../../users/user-store.ts'
import { invalidates, invalidatesNothing, type Write } from '../write.ts'
import type { Connection } from './database.ts'
import type { SharedStatements } from './shared-statements.ts'

export const prepareSessionOperations = (db: Connection, shared: SharedStatements) => {
  const { record, refusal, addSession, deleteSessions, readChanged } = shared
  const deleteSession = db.prepare(
    'DELETE FROM sessions WHERE id = ? AND user_key = (SELECT key FROM users WHERE id = ?)',
  )
  const setHash = db.prepare(
    'UPDATE users SET password_hash = ?, updated_at = ?, version = version + 1 WHERE id = ?',
  )
  const deleteInvalidatedTokens = db.prepare(
    `DELETE FROM email_tokens
     WHERE user_key = (SELECT key FROM users WHERE id = ?) AND purpose IN (SELECT value FROM json_each(?))`,
  )
  const replaceHash = db.prepare('UPDATE users SET password_hash = ? WHERE id = ? AND password_hash = ?')

  return {
    openSession(
      session: Session,
      verifiedHash: string | null,
      event: AuditEvent,
    ): Write<'opened' | UserRefusal> {
      const refused = refusal(session.userId, { verifiedHash, onlyEnabled: true })
      if (refused !== null) return invalidatesNothing(refused)
      addSession(session)
      record(event)
      return invalidatesNothing('opened')
    },

    rehash(userId: string, from: string, to: string): Write<void> {
      replaceHash.run(to, userId, from)
      return invalidatesNothing(undefined)
    },

    changePassword(
      session: Session,
      verifiedHash: string,
      newHash: string,
      event: AuditEvent,
    ): Write<User | UserRefusal> {
      const { userId } = session
      const refused = refusal(userId, { verifiedHash, onlyEnabled: true })
      if (refused !== null) return invalidatesNothing(refused)
      setHash.run(newHash, event.at, userId)
      deleteInvalidatedTokens.run(userId, JSON.stringify(INVALIDATED_BY_PASSWORD_CHANGE))
      deleteSessions(userId, null)
      addSession(session)
      record(event)
      return invalidates(userId, readChanged(userId))
    },

    endSession(id: string, event: AuditEvent): Write<'ended' | 'sessionNotFound' | UserRefusal> {
      const refused = refusal(event.userId, { verifiedHash: null, onlyEnabled: true })
      if (refused !== null) return invalidatesNothing(refused)
      if (deleteSession.run(id, event.userId).changes === 0) return invalidatesNothing('sessionNotFound')
      record(event)
      return invalidates(event.userId, 'ended')
    },

    endSessions(
      exceptId: string | null,
      event: AuditEvent,
      onlyEnabled: boolean,
    ): Write<'ended' | UserRefusal> {
      const refused = refusal(event.userId, { verifiedHash: null, onlyEnabled })
      if (refused !== null) return invalidatesNothing(refused)
      deleteSessions(event.userId, exceptId)
      record(event)
      return invalidates(event.userId, 'ended')
    },
  }
}
