/** Tokens in mails: presenting one proves access to its mailbox. Each works once, until it expires. */
import { hash, randomBytes } from 'node:crypto'
import type { EventType } from '../audit-log/event.ts'
import { hexTimestamp } from '../ids.ts'
import { ACCOUNT_MAILS, type AccountMails, type EmailTokenKind } from './mails.ts'

/** The kinds of mail with a token for a user. */
export type EmailTokenPurpose = {
  [Name in keyof AccountMails]: AccountMails[Name] extends { token: EmailTokenKind } ? Name : never
}[keyof AccountMails]

const TOKENS = Object.fromEntries(
  Object.entries(ACCOUNT_MAILS).flatMap(([name, kind]) => ('token' in kind ? [[name, kind.token]] : [])),
) as unknown as Readonly<Record<EmailTokenPurpose, EmailTokenKind>>

/**
 * The purposes whose pending tokens a changed password invalidates. A reset stays until the e-mail is confirmed: a stranger may have opened
 * the account, and must not end the way in of the owner of the mailbox.
 */
export const invalidatedByPasswordChange = (isConfirmed: boolean): readonly string[] =>
  Object.entries(TOKENS).flatMap(([purpose, { action, survivesPasswordChange }]) =>
    survivesPasswordChange || (action === 'resetPassword' && !isConfirmed) ? [] : [purpose],
  )

export const LONGEST_LIFETIME = Math.max(...Object.values(TOKENS).map(({ lifetime }) => lifetime))

/** The limit on mails with a token of one purpose to one user, or of sign-ups to one address; the window in milliseconds. */
export const MAX_MAILS = 5
export const MAIL_WINDOW = 3_600_000

/** The events that are counted for that limit. */
export const COUNTED_EVENTS = Object.fromEntries(
  Object.entries(TOKENS).map(([purpose, { countedBy }]) => [purpose, countedBy]),
) as Readonly<Record<EmailTokenPurpose, readonly EventType[]>>

/** A stored token; the token itself is only in the mail. Timestamps are milliseconds since the epoch. */
export interface EmailToken {
  /** See {@link digestOf}. */
  readonly digest: string
  readonly purpose: EmailTokenPurpose
  readonly userId: string
  /** The recipient. */
  readonly email: string
  readonly createdAt: number
  readonly expiresAt: number
}

/** Random bytes. */
const SECRET_LENGTH = 32

/**
 * Token and digest begin with their creation time, twelve hexadecimal digits, so that the table grows at its end. A row at
 * a random place writes a further page to SQLite's log, which cost a sign-up a tenth of the writer's time.
 */
const TIME = /^[0-9a-f]{12}/

/** The leading time, if any, and the SHA-256 of the whole token in base64url. Takes any text, also text that no store can keep. */
export const digestOf = (token: string): string =>
  (TIME.exec(token)?.[0] ?? '') + hash('sha256', token, 'base64url')

/** A token for a mail, and what is stored of it. @param now milliseconds since the epoch. */
export const newToken = (now: number): { token: string; digest: string } => {
  const token = hexTimestamp(now) + randomBytes(SECRET_LENGTH).toString('base64url')
  return { token, digest: digestOf(token) }
}

export const newEmailToken = (
  purpose: EmailTokenPurpose,
  userId: string,
  email: string,
  now: number,
): { token: string; stored: EmailToken } => {
  const { token, digest } = newToken(now)
  const expiresAt = now + TOKENS[purpose].lifetime
  return { token, stored: { digest, purpose, userId, email, createdAt: now, expiresAt } }
}

/**
 * Whether a token is presented for `action`; false also for `undefined`, a token that is not found, and for a purpose of another release.
 */
export const isTokenFor = (
  action: EmailTokenKind['action'],
  token: EmailToken | undefined,
): token is EmailToken => token !== undefined && TOKENS[token.purpose]?.action === action

/** Whether a token for `verifyEmail` confirms the e-mail that the account has; otherwise one that it is to have. */
export const confirmsCurrentEmail = ({ purpose }: EmailToken): boolean =>
  TOKENS[purpose].confirms === 'currentEmail'
