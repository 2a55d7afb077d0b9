/** Writes of e-mail tokens: adding one, and the changes that using one makes. */
import {
  COUNTED_EVENTS,
  confirmsCurrentEmail,
  type EmailToken,
  MAIL_WINDOW,
  MAX_MAILS,
} from '../../accounts/email-token.ts'
import type { AuditEvent } from '../../audit-log/event.ts'
import type { Session } from '../../auth/session.ts'
import { firstIdAt } from '../../ids.ts'
import type { User } from '../../users/user.ts'
import type { UserRefusal } from '../../users/user-store.ts'
import { emailTokenColumns } from '../rows.ts'
import { invalidates, invalidatesNothing, refusedFor, type Write } from '../write.ts'
import type { Connection } from './database.ts'
import { INSERT_EMAIL_TOKEN, type SharedStatements } from './shared-statements.ts'
import { unlessEmailTaken } from './user-operations.ts'

/** Inserts nothing when the user has been mailed too often. */
const ADD_TOKEN = `${INSERT_EMAIL_TOKEN}
    AND (SELECT count(*) FROM events
         WHERE user_id = @userId AND id >= @since AND type IN (SELECT value FROM json_each(@countedEvents))
        ) < ${MAX_MAILS}`

export const prepareEmailTokenOperations = (db: Connection, shared: SharedStatements) => {
  const { record, refusal, addSession, revokeSessions, deleteTokens, readChanged } = shared
  const addToken = db.prepare(ADD_TOKEN)
  const isUsable = db.prepare(
    `SELECT 1 FROM email_tokens WHERE digest = ? AND expires_at > ?
       AND user_key = (SELECT key FROM users WHERE id = ? AND disabled = 0)`,
  )
  const deleteToken = db.prepare('DELETE FROM email_tokens WHERE digest = ?')
  // The user may have changed the e-mail since the token was mailed.
  const verifyEmail = db.prepare(
    `UPDATE users SET email_verified = 1, updated_at = @at, version = version + 1
     WHERE id = @userId AND email = @email`,
  )
  const changeEmail = db.prepare(
    `UPDATE users SET email = @email, email_verified = 1, updated_at = @at, version = version + 1 WHERE id = @userId`,
  )
  const resetHash = db.prepare(
    `UPDATE users SET password_hash = @newHash, email_verified = 1, updated_at = @at, version = version + 1
     WHERE id = @userId AND email = @email`,
  )

  const changed = (event: AuditEvent): Write<User> => {
    record(event)
    return invalidates(event.userId, readChanged(event.userId))
  }

  return {
    addEmailToken(
      token: EmailToken,
      event: AuditEvent,
      verifiedHash: string | null,
    ): Write<'added' | 'tooManyMails' | UserRefusal> {
      const refused = refusal(token.userId, { verifiedHash, onlyEnabled: true })
      if (refused !== null) return refusedFor(token.userId, refused)
      const { changes } = addToken.run({
        ...emailTokenColumns(token),
        userId: token.userId,
        since: firstIdAt(token.createdAt - MAIL_WINDOW + 1),
        countedEvents: JSON.stringify(COUNTED_EVENTS[token.purpose]),
      })
      if (changes === 0) return invalidatesNothing('tooManyMails')
      record(event)
      return invalidatesNothing('added')
    },

    confirmEmail(token: EmailToken, event: AuditEvent): Write<User | 'emailTaken' | undefined> {
      const { digest, userId, email } = token
      if (isUsable.get(digest, event.at, userId) === undefined) return refusedFor(userId, undefined)
      const isCurrentEmail = confirmsCurrentEmail(token)
      const confirm = isCurrentEmail ? verifyEmail : changeEmail
      const confirmed = unlessEmailTaken(() => confirm.run({ at: event.at, userId, email }))
      if (confirmed === 'emailTaken') return refusedFor(userId, confirmed)
      if (confirmed === 0) return refusedFor(userId, undefined)
      if (isCurrentEmail) deleteToken.run(digest)
      else deleteTokens(userId)
      return changed(event)
    },

    resetPassword(
      token: EmailToken,
      session: Session,
      newHash: string,
      event: AuditEvent,
    ): Write<User | undefined> {
      const { digest, userId, email } = token
      if (isUsable.get(digest, event.at, userId) === undefined) return refusedFor(userId, undefined)
      if (resetHash.run({ newHash, at: event.at, userId, email }).changes === 0)
        return refusedFor(userId, undefined)
      deleteTokens(userId)
      revokeSessions(userId, null)
      addSession(session)
      return changed(event)
    },
  }
}
