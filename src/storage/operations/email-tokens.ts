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
import type { Factor } from '../../users/factors.ts'
import type { User } from '../../users/user.ts'
import type { ActingSession, SessionRefusal } from '../../users/user-store.ts'
import { EMAIL_TOKEN_COLUMNS, emailTokenColumns, factorsColumn, toUser, type UserRow } from '../rows.ts'
import type { AccessTable, OwnedTable } from '../stored-feature.ts'
import { consequenceOf, recordStatement } from './events.ts'
import { firstRow, type Statement, type Steps, unlessTaken } from './operation.ts'
import { takeOwned } from './owned-rows.ts'
import { parameters, valuesOf } from './parameters.ts'
import { refusalOf } from './refusals.ts'
import { addSessionStatement, forgetNetworksStatement, revokeAllSessions, sessionExists } from './sessions.ts'
import { LOCK_USERS_TABLE, lockUser } from './user-locks.ts'
import { invalidateMails, RETURNING_USER } from './users.ts'
import { invalidates, invalidatesNothing, refusedFor, type Write } from './write.ts'

/** The parameters after the columns of the token. */
const AFTER_TOKEN = 2 + EMAIL_TOKEN_COLUMNS.length

/** Inserts nothing and returns no row when the user has been mailed too often, or the session has ended. */
const addTokenStatement = (token: EmailToken, sessionId: string | null): Statement => ({
  text: ({ isOneOf }) => `INSERT INTO email_tokens (user_key, ${EMAIL_TOKEN_COLUMNS.join(', ')})
    SELECT key, ${parameters(EMAIL_TOKEN_COLUMNS, 2)} FROM users WHERE id = $1 AND (
      SELECT count(*) FROM events
      WHERE user_id = $1 AND id >= $${AFTER_TOKEN} AND ${isOneOf('type', `$${AFTER_TOKEN + 1}`, 'text')}
    ) < ${MAX_MAILS} AND (
      CAST($${AFTER_TOKEN + 2} AS text) IS NULL OR EXISTS (SELECT 1 FROM sessions WHERE id = $${AFTER_TOKEN + 2})
    ) RETURNING digest`,
  values: [
    token.userId,
    ...valuesOf(EMAIL_TOKEN_COLUMNS, emailTokenColumns(token)),
    firstIdAt(token.createdAt - MAIL_WINDOW + 1),
    COUNTED_EVENTS[token.purpose],
    sessionId,
  ],
})

export function* addEmailToken(
  token: EmailToken,
  event: AuditEvent,
  acting: ActingSession | null,
): Steps<Write<'added' | 'tooManyMails' | SessionRefusal>> {
  const { userId } = token
  // Concurrent calls for one user run one after the other, so each counts the events of the earlier ones.
  const refused = refusalOf(yield* lockUser(userId, acting?.passwordHash ?? null), { onlyEnabled: true })
  if (refused !== null) return refusedFor(userId, refused)
  if ((yield* firstRow(addTokenStatement(token, acting?.id ?? null))) === undefined) {
    const hasEnded = acting !== null && !(yield* sessionExists(acting.id, userId))
    return hasEnded ? refusedFor(userId, 'sessionNotFound') : invalidatesNothing('tooManyMails')
  }
  yield recordStatement(event)
  return invalidatesNothing('added')
}

/**
 * Locks the user of a token.
 * @returns `null` if the user is not enabled, or the token is used or expired.
 */
function* lockUserOf({ digest, userId }: EmailToken, now: number): Steps<{ isVerified: boolean } | null> {
  yield LOCK_USERS_TABLE
  if (refusalOf(yield* lockUser(userId), { onlyEnabled: true }) !== null) return null
  const user = yield* firstRow<Pick<UserRow, 'email_verified'>>({
    text: `SELECT email_verified FROM email_tokens JOIN users ON users.key = user_key
      WHERE digest = $1 AND expires_at > $2 AND users.id = $3`,
    values: [digest, now, userId],
  })
  return user === undefined ? null : { isVerified: user.email_verified === 1 }
}

/** The user may have changed the e-mail since the token was mailed. */
const VERIFY_EMAIL = `UPDATE users SET email_verified = 1, updated_at = $1, version = version + 1
  WHERE id = $2 AND email = $3 ${RETURNING_USER}`

const CHANGE_EMAIL = `UPDATE users SET email = $3, email_verified = 1, updated_at = $1, version = version + 1
  WHERE id = $2 ${RETURNING_USER}`

/** @param mailed tables of features, whose rows were mailed to their users. */
export const confirmEmailWith = (mailed: readonly OwnedTable[]) =>
  function* confirmEmail(
    token: EmailToken,
    event: AuditEvent,
  ): Steps<Write<User | 'emailTaken' | undefined>> {
    const { digest, userId, email } = token
    if ((yield* lockUserOf(token, event.at)) === null) return refusedFor(userId, undefined)
    const isCurrentEmail = confirmsCurrentEmail(token)
    const confirmed = yield* unlessTaken<UserRow>({
      text: isCurrentEmail ? VERIFY_EMAIL : CHANGE_EMAIL,
      values: [event.at, userId, email],
    })
    if (confirmed === 'taken') return refusedFor(userId, 'emailTaken')
    const [user] = confirmed
    if (user === undefined) return refusedFor(userId, undefined)
    if (isCurrentEmail) yield { text: 'DELETE FROM email_tokens WHERE digest = $1', values: [digest] }
    else yield* invalidateMails(mailed, userId)
    yield recordStatement(event)
    return invalidates(userId, toUser(user))
  }

/** What grants access to an account without its password. */
export interface GrantedAccess {
  readonly tables: readonly AccessTable[]
  /** The factors whose rows are in these tables. */
  readonly factors: readonly Factor[]
}

/** Deletes what grants access. The caller invalidates the user. */
function* removeAccess(tables: readonly AccessTable[], event: AuditEvent): Steps<void> {
  for (const table of tables) {
    const { type, detail } = table.grantsAccess
    for (const key of yield* takeOwned(table, event.userId))
      yield recordStatement(consequenceOf(event, type, { [detail]: key }))
  }
}

/**
 * @param mailed tables of features, whose rows were mailed to their users.
 * @param granted removed if the reset confirms the e-mail for the first time: somebody else may have opened the account.
 */
export const resetPasswordWith = (mailed: readonly OwnedTable[], granted: GrantedAccess) =>
  function* resetPassword(
    token: EmailToken,
    factors: readonly Factor[],
    session: Session,
    newHash: string,
    event: AuditEvent,
  ): Steps<Write<User | undefined>> {
    const { userId, email } = token
    const found = yield* lockUserOf(token, event.at)
    if (found === null) return refusedFor(userId, undefined)
    const kept = found.isVerified ? factors : factors.filter(factor => !granted.factors.includes(factor))
    const user = yield* firstRow<UserRow>({
      text: `UPDATE users SET password_hash = $4, email_verified = 1, factors = CAST($6 AS text), updated_at = $1, version = version + 1
        WHERE id = $2 AND email = $3 AND factors IS NOT DISTINCT FROM CAST($5 AS text) ${RETURNING_USER}`,
      values: [event.at, userId, email, newHash, factorsColumn(factors), factorsColumn(kept)],
    })
    if (user === undefined) return refusedFor(userId, undefined)
    yield* invalidateMails(mailed, userId)
    yield* revokeAllSessions(userId)
    yield forgetNetworksStatement(userId)
    yield addSessionStatement(session)
    yield recordStatement(event)
    if (!found.isVerified) yield* removeAccess(granted.tables, event)
    return invalidates(userId, toUser(user))
  }
