import { hash, randomBytes } from 'node:crypto'
import type { AuditEvent, EventType } from '../audit-log/event.ts'
import type { Session } from '../auth/session.ts'
import { hexMoment } from '../ids.ts'
import type { User } from '../users/user.ts'
import type { MaybePromise, UserRefusal } from '../users/user-store.ts'
import { ACCOUNT_MAILS, type AccountMails, type EmailTokenKind } from './mails.ts'

/** The kinds of mail with a token. `accountExists` also resets a password; apart, so that sign-ups by strangers use up no reset. */
export type EmailTokenPurpose = {
  [Name in keyof AccountMails]: AccountMails[Name] extends { token: EmailTokenKind } ? Name : never
}[keyof AccountMails]

const TOKENS = Object.fromEntries(
  Object.entries(ACCOUNT_MAILS).flatMap(([name, kind]) => ('token' in kind ? [[name, kind.token]] : [])),
) as unknown as Readonly<Record<EmailTokenPurpose, EmailTokenKind>>

export const LONGEST_LIFETIME = Math.max(...Object.values(TOKENS).map(({ lifetime }) => lifetime))

/** At most so many tokens of one purpose are mailed to a user within a span (milliseconds). */
export const MAILED_AT_MOST = 5
export const MAILED_WITHIN = 3_600_000

/** The events that are counted for that limit. */
export const MAILED_BY = Object.fromEntries(
  Object.entries(TOKENS).map(([purpose, { countedBy }]) => [purpose, countedBy]),
) as Readonly<Record<EmailTokenPurpose, readonly EventType[]>>

/** As it is stored: the token itself is in the mail alone. Timestamps are milliseconds since the epoch. */
export interface EmailToken {
  /** The token's first part, and the SHA-256 of all of it in base64url: {@link digestOf}. */
  readonly digest: string
  readonly purpose: EmailTokenPurpose
  readonly userId: string
  /** The address that it is mailed to. */
  readonly email: string
  readonly createdAt: number
  readonly expiresAt: number
}

/** Bytes that nobody can guess. */
const SECRET_LENGTH = 32

/**
 * Token and digest begin with their timestamp, twelve hexadecimal digits. In the order of time a table grows at its end: a row at
 * a random place is a page of its own in SQLite's log, which cost a sign-up a tenth of the writer's time.
 */
const MOMENT = /^[0-9a-f]{12}/

/** Of whatever is presented, also of what no store could keep as text: none of that is found. */
export const digestOf = (token: string): string =>
  (MOMENT.exec(token)?.[0] ?? '') + hash('sha256', token, 'base64url')

/** A token, and what is stored of it. */
export const newEmailToken = (
  purpose: EmailTokenPurpose,
  userId: string,
  email: string,
  now: number,
): { token: string; stored: EmailToken } => {
  const token = hexMoment(now) + randomBytes(SECRET_LENGTH).toString('base64url')
  const expiresAt = now + TOKENS[purpose].lifetime
  return { token, stored: { digest: digestOf(token), purpose, userId, email, createdAt: now, expiresAt } }
}

/** Whether a token is presented for `action`; false also for `undefined`, a token that is not found. */
export const isTokenFor = (
  action: EmailTokenKind['action'],
  token: EmailToken | undefined,
): token is EmailToken => token !== undefined && TOKENS[token.purpose].action === action

/** What e-mail tokens need of a store. Every write is on disk before its promise resolves, its event with it. */
export interface EmailTokenStore {
  /**
   * Keeps a token, if the user is enabled and has not been mailed too many of its purpose ({@link MAILED_BY}).
   * @param verifiedHash where given, only while it is the hash of the user's password.
   */
  add(
    token: EmailToken,
    event: AuditEvent,
    verifiedHash: string | null,
  ): Promise<'added' | 'tooManyMails' | UserRefusal>
  /** What is known of a token that can be used at a timestamp. */
  find(digest: string, now: number): MaybePromise<EmailToken | undefined>
  /**
   * Uses up a token of a verification, or of a change of the e-mail with all others of the user: its address is the user's,
   * and verified.
   * @returns the user as changed, `undefined` when the token cannot be used, `'emailTaken'` when another has that e-mail.
   */
  confirmEmail(token: EmailToken, event: AuditEvent): Promise<User | 'emailTaken' | undefined>
  /**
   * Uses up a token of a password reset with all others of the user: replaces the password's hash, ends every session,
   * opens this one. The address that it was mailed to is verified by it.
   * @returns the user as changed, `undefined` when the token cannot be used.
   */
  resetPassword(
    token: EmailToken,
    session: Session,
    newHash: string,
    event: AuditEvent,
  ): Promise<User | undefined>
}
