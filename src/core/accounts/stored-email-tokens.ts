/** Writes of e-mail tokens, and the changes that using one makes. */

import {
  firstRow,
  type Query,
  query,
  rows,
  type Statement,
  type Steps,
  USER_KEY,
  unlessTaken,
} from '#storage/operations/operation'
import { parameters, valuesOf } from '#storage/operations/parameters'
import {
  endsAccess,
  invalidates,
  invalidatesNothing,
  refusedFor,
  type Write,
} from '#storage/operations/write'
import type { AuditEvent } from '../audit-log/event.ts'
import { countEvents, recordStatement } from '../audit-log/stored-events.ts'
import { type ActingSession, sessionExists } from '../auth/stored-sessions.ts'
import type { EmailTokensTable } from '../store/tables.ts'
import type { Factor } from '../users/factors.ts'
import type { OwnedTables } from '../users/owned-rows.ts'
import { refusalOf, type SessionRefusal } from '../users/refusals.ts'
import { factorsOf } from '../users/stored-factors.ts'
import type { RemovalRefused, Removed, UserRemovals } from '../users/stored-removals.ts'
import { invalidateMails, RETURNING_USER } from '../users/stored-users.ts'
import type { User } from '../users/user.ts'
import { LOCK_USERS_TABLE, lockUser } from '../users/user-locks.ts'
import { factorsColumn, toUser, type UserRow } from '../users/user-rows.ts'
import {
  confirmsCurrentEmail,
  EMAIL_TOKEN_POLICIES,
  type EmailToken,
  MAIL_DAY,
  MAIL_WINDOW,
  MAX_MAILS,
} from './email-token.ts'
import { isUnderAnonymousMailLimit, knownNetworksOf } from './stored-mail-limits.ts'
import { addPendingChange } from './stored-pending-changes.ts'

/** An e-mail token without its user, which is a key in the table and an id elsewhere. */
type EmailTokenRow = Omit<EmailTokensTable, 'user_key'>

export const EMAIL_TOKEN_COLUMNS = [
  'digest',
  'purpose',
  'email',
  'created_at',
  'expires_at',
] as const satisfies readonly (keyof EmailTokenRow)[]

export const emailTokenColumns = (token: EmailToken): EmailTokenRow => ({
  digest: token.digest,
  purpose: token.purpose,
  email: token.email,
  created_at: token.createdAt,
  expires_at: token.expiresAt,
})

/** Selects e-mail tokens with the property names of `EmailToken`; a condition must follow. */
const selectEmailToken = `SELECT digest, purpose, email, created_at AS "createdAt", expires_at AS "expiresAt",
  (SELECT id FROM users WHERE key = user_key) AS "userId" FROM email_tokens`

/** Shows that a client may confirm the e-mail of an account: a session of the account, or its verified password and code. */
export type AccountProof =
  | { readonly sessionId: string }
  | { readonly passwordHash: string; readonly factors: readonly Factor[] }

/** Adds a token. The user must be locked, or added in the same operation. */
export const addTokenStatement = (token: EmailToken): Statement => ({
  text: `INSERT INTO email_tokens (user_key, ${EMAIL_TOKEN_COLUMNS.join(', ')})
    SELECT key, ${parameters(EMAIL_TOKEN_COLUMNS, 2)} FROM users WHERE id = $1`,
  values: [token.userId, ...valuesOf(EMAIL_TOKEN_COLUMNS, emailTokenColumns(token))],
})

/** Whether the user, who must be locked, may be mailed once more. @param isAnybodys whether no session is needed to ask. */
function* isUnderMailLimit({ purpose }: EmailToken, event: AuditEvent, isAnybodys: boolean): Steps<boolean> {
  const { countedBy, maxPerDay } = EMAIL_TOKEN_POLICIES[purpose]
  const { userId, at } = event
  if (isAnybodys)
    return yield* isUnderAnonymousMailLimit(event, countedBy, yield* knownNetworksOf({ id: userId }, at))
  if (maxPerDay !== undefined && (yield* countEvents(userId, countedBy, at - MAIL_DAY + 1)) >= maxPerDay)
    return false
  return (yield* countEvents(userId, countedBy, at - MAIL_WINDOW + 1)) < MAX_MAILS
}

/** Whether a proof still holds; its hash is compared with the lock. */
function* holds(proof: AccountProof, userId: string): Steps<boolean> {
  return 'sessionId' in proof
    ? yield* sessionExists(proof.sessionId, userId)
    : (yield* factorsOf(userId)) === factorsColumn(proof.factors)
}

interface LockedUser {
  readonly email: string
  readonly emailVerified: boolean
  readonly isProved: boolean
}

/**
 * Locks the user of a token. @param proof `null` if the token alone proves enough. @param removals for an operation that may remove the user.
 * @returns `null` if the user is not enabled, or the token is used or expired.
 */
function* lockUserOf(
  { digest, userId }: EmailToken,
  now: number,
  proof: AccountProof | null,
  removals: UserRemovals | null = null,
): Steps<LockedUser | null> {
  yield LOCK_USERS_TABLE
  if (removals !== null) yield* removals.lock(userId)
  const strength = removals === null ? 'change' : 'remove'
  const hash = proof !== null && 'passwordHash' in proof ? proof.passwordHash : null
  const state = yield* lockUser(userId, hash, strength)
  if (state === undefined || state.disabled === 1) return null
  const user = yield* firstRow<Pick<UserRow, 'email' | 'email_verified'>>({
    text: `SELECT users.email, email_verified FROM email_tokens JOIN users ON users.key = user_key
      WHERE digest = $1 AND expires_at > $2 AND users.id = $3`,
    values: [digest, now, userId],
  })
  if (user === undefined) return null
  const isProved = state.verified === 1 && (proof === null || (yield* holds(proof, userId)))
  return { email: user.email, emailVerified: user.email_verified === 1, isProved }
}

/** Confirms an e-mail by its mailbox. The user may have changed it since the mail was sent. Values: the time, the id, the e-mail. */
export const VERIFY_EMAIL = `UPDATE users SET email_verified = 1, updated_at = $1, version = version + 1
  WHERE id = $2 AND email = $3 ${RETURNING_USER}`

const CHANGE_EMAIL = `UPDATE users SET email = $3, email_verified = 1, updated_at = $1, version = version + 1
  WHERE id = $2 ${RETURNING_USER}`

/**
 * Whether the user has signed up, and had no other e-mail and no confirmed one since. Without these events the account is not removed: one
 * that an administrator has created or changed belongs to somebody.
 */
function* hasOnlySignedUp(userId: string): Steps<boolean> {
  const events = yield* rows<{ type: string }>({
    text: `SELECT type FROM events WHERE user_id = $1 AND (
      type IN ('user.signed-up', 'email.verified', 'email.changed') OR type = 'user.changed' AND details LIKE '%"email%')`,
    values: [userId],
  })
  return events.length > 0 && events.every(({ type }) => type === 'user.signed-up')
}

export const emailTokenOperations = ({ mailed }: OwnedTables, removals: UserRemovals) => ({
  /**
   * Stores a token, if the user is enabled and the limits on mails of its purpose are not reached.
   * @param session of the user who asks, with whose proof of identity the token ends; `null` if anybody can ask.
   */
  *add(
    token: EmailToken,
    event: AuditEvent,
    session: ActingSession | null,
  ): Steps<Write<'added' | 'tooManyMails' | SessionRefusal>> {
    const { userId } = token
    // Concurrent calls for one user run one after the other, so each counts the events of the earlier ones.
    const refused = refusalOf(yield* lockUser(userId), { onlyEnabled: true })
    if (refused !== null) return refusedFor(userId, refused)
    if (session !== null && !(yield* sessionExists(session, userId)))
      return refusedFor(userId, 'sessionNotFound')
    if (!(yield* isUnderMailLimit(token, event, session === null))) return invalidatesNothing('tooManyMails')
    yield addTokenStatement(token)
    if (session !== null && typeof session !== 'string')
      yield addPendingChange({ id: token.digest, expiresAt: token.expiresAt }, userId, session)
    yield recordStatement(event)
    return invalidatesNothing('added')
  },

  /**
   * Uses a token for `verifyEmail`: sets the user's e-mail, as verified. Another e-mail ends all other tokens of the user.
   * @returns `notFound` for an invalid token, `notProved` if the proof does not hold any more, `emailTaken` by another user.
   */
  *confirmEmail(
    token: EmailToken,
    event: AuditEvent,
    proof: AccountProof,
  ): Steps<Write<User | 'notFound' | 'notProved' | 'emailTaken'>> {
    const { digest, userId, email } = token
    const found = yield* lockUserOf(token, event.at, proof)
    if (found === null) return refusedFor(userId, 'notFound')
    if (!found.isProved) return refusedFor(userId, 'notProved')
    const isCurrentEmail = confirmsCurrentEmail(token)
    const confirmed = yield* unlessTaken<UserRow>({
      text: isCurrentEmail ? VERIFY_EMAIL : CHANGE_EMAIL,
      values: [event.at, userId, email],
    })
    if (confirmed === 'taken') return refusedFor(userId, 'emailTaken')
    const [user] = confirmed
    if (user === undefined) return refusedFor(userId, 'notFound')
    if (isCurrentEmail) yield { text: 'DELETE FROM email_tokens WHERE digest = $1', values: [digest] }
    else yield* invalidateMails(mailed, userId)
    yield recordStatement(event)
    // A host may give access by the e-mail, so the former one must be nowhere any more.
    return (isCurrentEmail ? invalidates : endsAccess)(userId, toUser(user))
  },

  /**
   * Uses a token of somebody who does not know the account: ends the user's pending changes to its address, or removes the user, who has
   * signed up with it and never confirmed it. @returns `notFound` for an invalid token, and for an account that is not removed.
   */
  *rejectEmail(
    token: EmailToken,
    event: AuditEvent,
  ): Steps<Write<'changeEnded' | 'notFound' | Removed | RemovalRefused>> {
    const { userId, email, purpose } = token
    const isCurrentEmail = confirmsCurrentEmail(token)
    const found = yield* lockUserOf(token, event.at, null, isCurrentEmail ? removals : null)
    if (found === null) return refusedFor(userId, 'notFound')
    if (!isCurrentEmail) {
      yield {
        text: `DELETE FROM email_tokens WHERE user_key = ${USER_KEY} AND purpose = $2 AND email = $3`,
        values: [userId, purpose, email],
      }
      yield recordStatement(event)
      return invalidatesNothing('changeEnded')
    }
    if (found.emailVerified || found.email !== email) return refusedFor(userId, 'notFound')
    if (!(yield* hasOnlySignedUp(userId))) return refusedFor(userId, 'notFound')
    const removed = yield* removals.remove(event, 'others')
    if ('refusal' in removed) return refusedFor(userId, removed)
    return endsAccess(removed.evicts, { outcomes: removed.outcomes })
  },
})

const EMAIL_TOKEN = `${selectEmailToken} WHERE digest = $1 AND expires_at > $2`

export const emailTokenReads = {
  /** @returns `undefined` also for a used or expired token. */
  find: (digest: string, now: number): Query<EmailToken | undefined> =>
    query(
      { name: 'email-token', text: EMAIL_TOKEN, values: [digest, now] },
      ([token]: readonly EmailToken[]) => token,
    ),
}
