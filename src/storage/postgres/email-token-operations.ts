/** Writes of e-mail tokens, and the changes that using one makes. */
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
import { refusalOf } from '../refusals.ts'
import { invalidates, invalidatesNothing, refusedFor } from '../write.ts'
import type { Database, Run } from './database.ts'
import { record } from './event-operations.ts'
import { addSessionStatement, REVOKE_SESSIONS } from './session-operations.ts'
import { LOCK_TABLE, lockUser } from './user-locks.ts'
import { DELETE_TOKENS, readChanged, unlessEmailTaken } from './user-operations.ts'

const ADD_TOKEN = `INSERT INTO email_tokens (user_key, digest, purpose, email, created_at, expires_at)
  SELECT key, $2, $3, $4, $5, $6 FROM users WHERE id = $1
    AND (SELECT count(*) FROM events WHERE user_id = $1 AND id >= $7 AND type = ANY($8)) < ${MAX_MAILS}
  RETURNING digest`

const IS_USABLE = `SELECT digest FROM email_tokens WHERE digest = $1 AND expires_at > $2
  AND user_key = (SELECT key FROM users WHERE id = $3)`

// Only while the address is the user's.
const VERIFY_EMAIL = `UPDATE users SET email_verified = 1, updated_at = $1, version = version + 1
  WHERE id = $2 AND email = $3 RETURNING id`

const CHANGE_EMAIL = `UPDATE users SET email = $3, email_verified = 1, updated_at = $1, version = version + 1
  WHERE id = $2 RETURNING id`

const RESET_HASH = `UPDATE users SET password_hash = $4, email_verified = 1, updated_at = $1, version = version + 1
  WHERE id = $2 AND email = $3 RETURNING id`

const DELETE_TOKEN = 'DELETE FROM email_tokens WHERE digest = $1'

const isUsable = async (run: Run, { digest, userId }: EmailToken, now: number): Promise<boolean> => {
  await run(LOCK_TABLE)
  if (refusalOf(await lockUser(run, userId), { onlyEnabled: true }) !== null) return false
  return (await run({ text: IS_USABLE, values: [digest, now, userId] })).length === 1
}

export const emailTokenOperations = (database: Database) => ({
  async addEmailToken(
    token: EmailToken,
    event: AuditEvent,
    verifiedHash: string | null,
  ): Promise<'added' | 'tooManyMails' | UserRefusal> {
    const { digest, purpose, userId, email, createdAt, expiresAt } = token
    const since = firstIdAt(createdAt - MAIL_WINDOW + 1)
    const values = [userId, digest, purpose, email, createdAt, expiresAt, since, COUNTED_EVENTS[purpose]]
    return database.transaction<'added' | 'tooManyMails' | UserRefusal>(async run => {
      // Concurrent calls for one user run one after the other, so each counts the events of the earlier ones.
      const refused = refusalOf(await lockUser(run, userId, verifiedHash), { onlyEnabled: true })
      if (refused !== null) return refusedFor(userId, refused)
      if ((await run({ text: ADD_TOKEN, values })).length === 0) return invalidatesNothing('tooManyMails')
      await run(record(event))
      return invalidatesNothing('added')
    })
  },

  async confirmEmail(token: EmailToken, event: AuditEvent): Promise<User | 'emailTaken' | undefined> {
    const { digest, userId, email } = token
    const isCurrentEmail = confirmsCurrentEmail(token)
    return database.transaction<User | 'emailTaken' | undefined>(async run => {
      if (!(await isUsable(run, token, event.at))) return refusedFor(userId, undefined)
      const confirm = {
        text: isCurrentEmail ? VERIFY_EMAIL : CHANGE_EMAIL,
        values: [event.at, userId, email],
      }
      const confirmed = await unlessEmailTaken(run(confirm))
      if (confirmed === 'emailTaken') return refusedFor(userId, confirmed)
      if (confirmed.length === 0) return refusedFor(userId, undefined)
      await run(
        isCurrentEmail ? { text: DELETE_TOKEN, values: [digest] } : { text: DELETE_TOKENS, values: [userId] },
      )
      await run(record(event))
      return invalidates(userId, await readChanged(run, userId))
    })
  },

  async resetPassword(
    token: EmailToken,
    session: Session,
    newHash: string,
    event: AuditEvent,
  ): Promise<User | undefined> {
    const { userId, email } = token
    return database.transaction<User | undefined>(async run => {
      if (!(await isUsable(run, token, event.at))) return refusedFor(userId, undefined)
      const reset = { text: RESET_HASH, values: [event.at, userId, email, newHash] }
      if ((await run(reset)).length === 0) return refusedFor(userId, undefined)
      await run({ text: DELETE_TOKENS, values: [userId] })
      await run({ text: REVOKE_SESSIONS, values: [userId, null] })
      await run(addSessionStatement(session))
      await run(record(event))
      return invalidates(userId, await readChanged(run, userId))
    })
  },
})
