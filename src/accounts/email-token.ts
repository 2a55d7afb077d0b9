import { hash, randomBytes } from 'node:crypto'
import type { AuditEvent, EventType } from '../audit-log/event.ts'
import type { Session } from '../auth/sessions.ts'
import { hexMoment } from '../ids.ts'
import type { User } from '../users/user.ts'
import type { MaybePromise, UserRefusal } from '../users/user-store.ts'

/** How long the tokens in mails can be used, in milliseconds. Mails say so, and the use cases hold to it. */
const HOUR = 3_600_000

export const VERIFICATION = 24 * HOUR
export const EMAIL_CHANGE = 24 * HOUR
export const PASSWORD_RESET = HOUR

export const LONGEST_LIFETIME = Math.max(VERIFICATION, EMAIL_CHANGE, PASSWORD_RESET)

/** Tokens that are mailed: whoever presents one reads the mails of its address. Each works once, and for a while. */

/** `accountExists` resets a password too; apart, so that whoever signs up with a stranger's address uses up no reset of theirs. */
export type MailPurpose = 'verification' | 'emailChange' | 'passwordReset' | 'accountExists'

const LIFETIMES: Record<MailPurpose, number> = {
  verification: VERIFICATION,
  emailChange: EMAIL_CHANGE,
  passwordReset: PASSWORD_RESET,
  accountExists: PASSWORD_RESET,
}

/** Tokens of one purpose that a user is mailed within a span (milliseconds): nobody floods a mailbox through us. */
export const MAILED_AT_MOST = 5
export const MAILED_WITHIN = 3_600_000

/** What each of them has left in the audit log, which is what counts: tokens go when they are used or ended. */
export const MAILED_BY: Record<MailPurpose, readonly EventType[]> = {
  verification: ['user.signed-up', 'email.verification-requested'],
  emailChange: ['email.change-requested'],
  passwordReset: ['password.reset-requested'],
  accountExists: ['user.sign-up-repeated'],
}

/** As it is stored: the token itself is in the mail alone. Timestamps are milliseconds since the epoch. */
export interface EmailToken {
  /** The token's first part, and the SHA-256 of all of it in base64url: {@link digestOf}. */
  readonly digest: string
  readonly purpose: MailPurpose
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
  purpose: MailPurpose,
  userId: string,
  email: string,
  now: number,
): { token: string; stored: EmailToken } => {
  const token = hexMoment(now) + randomBytes(SECRET_LENGTH).toString('base64url')
  const expiresAt = now + LIFETIMES[purpose]
  return { token, stored: { digest: digestOf(token), purpose, userId, email, createdAt: now, expiresAt } }
}

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
