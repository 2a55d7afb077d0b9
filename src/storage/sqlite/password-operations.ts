/** Writes of passwords. */
import { INVALIDATED_BY_PASSWORD_CHANGE } from '../../accounts/email-token.ts'
import type { AuditEvent } from '../../audit-log/event.ts'
import type { Session } from '../../auth/session.ts'
import type { User } from '../../users/user.ts'
import type { UserRefusal } from '../../users/user-store.ts'
import { invalidates, invalidatesNothing, refusedFor, type Write } from '../write.ts'
import type { Connection } from './database.ts'
import type { SharedStatements } from './shared-statements.ts'

export const preparePasswordOperations = (db: Connection, shared: SharedStatements) => {
  const { record, refusal, addSession, revokeSessions, readChanged } = shared
  const setHash = db.prepare(
    'UPDATE users SET password_hash = ?, updated_at = ?, version = version + 1 WHERE id = ?',
  )
  const deleteInvalidatedTokens = db.prepare(
    `DELETE FROM email_tokens
     WHERE user_key = (SELECT key FROM users WHERE id = ?) AND purpose IN (SELECT value FROM json_each(?))`,
  )
  const replaceHash = db.prepare('UPDATE users SET password_hash = ? WHERE id = ? AND password_hash = ?')

  return {
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
      if (refused !== null) return refusedFor(userId, refused)
      setHash.run(newHash, event.at, userId)
      deleteInvalidatedTokens.run(userId, JSON.stringify(INVALIDATED_BY_PASSWORD_CHANGE))
      revokeSessions(userId, null)
      addSession(session)
      record(event)
      return invalidates(userId, readChanged(userId))
    },
  }
}
