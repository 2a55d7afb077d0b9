/** Tokens in mails: presenting one proves access to its mailbox. Each works once, until it expires. */
import { hash, randomBytes } from 'node:crypto'
import { ServiceError } from '#base/errors'
import { hexTimestamp } from '#base/ids'
import type { EventType } from '../audit-log/event.ts'

/** `confirms`: the account has the address of the mail, or gets it. */
type EmailTokenAction =
  | { readonly action: 'verifyEmail'; readonly confirms: 'currentEmail' | 'newEmail' }
  | { readonly action: 'resetPassword'; readonly confirms?: undefined }

type EmailTokenPolicy = EmailTokenAction & {
  /** Whether it stays valid when the user changes the password. */
  readonly survivesPasswordChange?: true
  /** Whether users need a proof of identity to ask. The token ends with it. */
  readonly needsProof?: true
  readonly lifetime: number
  /** The events that count for the limit: tokens are deleted when they are used. */
  readonly countedBy: readonly EventType[]
  /** Such mails that an account causes within a day: they go to addresses of others. */
  readonly maxPerDay?: number
}

const HOUR = 3_600_000

/** Milliseconds for which a link that confirms an e-mail works. */
export const VERIFICATION_LIFETIME = 24 * HOUR
/** Milliseconds for which a link that resets a password works. */
export const RESET_LIFETIME = HOUR

/** Stored. Renaming one would make the pending links of the previous release invalid. */
export type EmailTokenPurpose = 'verification' | 'emailChange' | 'passwordReset'

/** Apart from the texts (`mails.ts`): the store and SQLite's writer thread need only this. */
export const EMAIL_TOKEN_POLICIES: Readonly<Record<EmailTokenPurpose, EmailTokenPolicy>> = {
  verification: {
    action: 'verifyEmail',
    confirms: 'currentEmail',
    survivesPasswordChange: true,
    lifetime: VERIFICATION_LIFETIME,
    countedBy: ['user.signed-up', 'email.verification-requested'],
  },
  emailChange: {
    action: 'verifyEmail',
    confirms: 'newEmail',
    needsProof: true,
    lifetime: VERIFICATION_LIFETIME,
    countedBy: ['email.change-requested'],
    maxPerDay: 10,
  },
  passwordReset: {
    action: 'resetPassword',
    lifetime: RESET_LIFETIME,
    countedBy: ['password.reset-requested'],
  },
}

/**
 * The purposes whose tokens a changed password ends. A reset stays until the e-mail is confirmed: a stranger may have opened the account, and
 * must not stop the owner of the mailbox from signing in.
 */
export const invalidatedByPasswordChange = (isConfirmed: boolean): readonly string[] =>
  Object.entries(EMAIL_TOKEN_POLICIES).flatMap(([purpose, { action, survivesPasswordChange }]) =>
    survivesPasswordChange || (action === 'resetPassword' && !isConfirmed) ? [] : [purpose],
  )

export const LONGEST_LIFETIME = Math.max(
  ...Object.values(EMAIL_TOKEN_POLICIES).map(({ lifetime }) => lifetime),
)

/** Mails of one purpose to one user, or of sign-ups to one address, within a window of so many milliseconds. */
export const MAX_MAILS = 5
export const MAIL_WINDOW = HOUR

/** The error past a limit. Windows slide: after an hour, there may be room again. */
export const tooManyMails = (): ServiceError =>
  new ServiceError('tooManyRequests', { headers: { 'retry-after': String(MAIL_WINDOW / 1_000) } })

/** The window of limits on what a user mails to others, in milliseconds. */
export const MAIL_DAY = 24 * HOUR

/** Mails in all for which anybody can ask: {@link MAX_MAILS} are for each network of the user, and for all others together. */
export const MAX_MAILS_IN_ALL = 15

/** A stored token; the token itself is only in the mail. Timestamps are milliseconds since the epoch. */
export interface EmailToken {
  /** {@link digestOf} the token. */
  readonly digest: string
  readonly purpose: EmailTokenPurpose
  readonly userId: string
  readonly email: string
  readonly createdAt: number
  readonly expiresAt: number
}

const SECRET_LENGTH = 32

/**
 * Token and digest begin with their creation time, twelve hexadecimal digits, so that the table grows at its end. A row at a random place
 * cost a sign-up a tenth of the writer's time.
 */
const TIME = /^[0-9a-f]{12}/

/** The leading time, and the SHA-256 in base64url. Takes any text. */
export const digestOf = (token: string): string =>
  (TIME.exec(token)?.[0] ?? '') + hash('sha256', token, 'base64url')

/** @param now milliseconds since the epoch. */
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
  const expiresAt = now + EMAIL_TOKEN_POLICIES[purpose].lifetime
  return { token, stored: { digest, purpose, userId, email, createdAt: now, expiresAt } }
}

/** Whether a token was found, for this action. False for a purpose of another release. */
export const isTokenFor = (
  action: EmailTokenAction['action'],
  token: EmailToken | undefined,
): token is EmailToken => token !== undefined && EMAIL_TOKEN_POLICIES[token.purpose]?.action === action

/** Whether it confirms the e-mail that the account has; otherwise one that it is to have. */
export const confirmsCurrentEmail = ({ purpose }: EmailToken): boolean =>
  EMAIL_TOKEN_POLICIES[purpose].confirms === 'currentEmail'
