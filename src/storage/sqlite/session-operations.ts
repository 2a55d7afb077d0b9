/** Writes of sessions. */
import type { AuditEvent } from '../../audit-log/event.ts'
import type { Session } from '../../auth/session.ts'
import type { RevokeAllOptions } from '../../auth/session-store.ts'
import type { UserRefusal } from '../../users/user-store.ts'
import { invalidates, invalidatesNothing, refusedFor, type Write } from '../write.ts'
import type { Connection } from './database.ts'
import type { SharedStatements } from './shared-statements.ts'

export const prepareSessionOperations = (db: Connection, shared: SharedStatements) => {
  const { record, refusal, addSession, revokeSessions } = shared
  const deleteSession = db.prepare(
    'DELETE FROM sessions WHERE id = ? AND user_key = (SELECT key FROM users WHERE id = ?)',
  )

  return {
    openSession(
      session: Session,
      verifiedHash: string | null,
      event: AuditEvent,
    ): Write<'opened' | UserRefusal> {
      const refused = refusal(session.userId, { verifiedHash, onlyEnabled: true })
      if (refused !== null) return refusedFor(session.userId, refused)
      addSession(session)
      record(event)
      return invalidatesNothing('opened')
    },

    revokeSession(id: string, event: AuditEvent): Write<'revoked' | 'sessionNotFound' | UserRefusal> {
      const refused = refusal(event.userId, { verifiedHash: null, onlyEnabled: true })
      if (refused !== null) return refusedFor(event.userId, refused)
      if (deleteSession.run(id, event.userId).changes === 0)
        return refusedFor(event.userId, 'sessionNotFound')
      record(event)
      return invalidates(event.userId, 'revoked')
    },

    revokeSessions(
      event: AuditEvent,
      { exceptId, onlyEnabled }: RevokeAllOptions,
    ): Write<'revoked' | UserRefusal> {
      const refused = refusal(event.userId, { verifiedHash: null, onlyEnabled })
      if (refused !== null) return refusedFor(event.userId, refused)
      revokeSessions(event.userId, exceptId)
      record(event)
      return invalidates(event.userId, 'revoked')
    },
  }
}
