/** The mails of accounts. Each kind is declared here and nowhere else; `EmailTokenPurpose` follows from those with a token. */
import type { EventType } from '../audit-log/event.ts'
import { type Block, linkTo, type MailKind, type MailSender, type MailSite } from '../mail/kinds.ts'

/** The token of a mail's link. */
export interface EmailTokenKind {
  /** What the token is presented for. */
  readonly action: 'verifyEmail' | 'resetPassword'
  /** Milliseconds. */
  readonly lifetime: number
  /** The events that record such a mail. They are counted for the limit, since tokens are deleted when they are used. */
  readonly countedBy: readonly EventType[]
}

interface AccountMailKind extends MailKind {
  readonly token?: EmailTokenKind
}

interface TokenValue {
  readonly token: string
}

interface NewEmailValue {
  readonly newEmail: string
}

const HOUR = 3_600_000
const VERIFICATION_LIFETIME = 24 * HOUR
const RESET_LIFETIME = HOUR

const hours = (milliseconds: number): string => {
  const count = milliseconds / HOUR
  return count === 1 ? 'one hour' : `${count} hours`
}

const withoutBrowser = ({ publicUrl }: MailSite, path: string, token: string): Block[] => [
  `Without a browser, send this token to POST ${publicUrl}${path}:`,
  { code: token },
]

const verifyEmail = (site: MailSite, label: string, token: string): Block[] => [
  { link: linkTo(site.publicUrl, '/account/verify-email', token), label },
  ...withoutBrowser(site, '/account/verify-email', token),
]

const resetPassword = (site: MailSite, token: string): Block[] => [
  { link: linkTo(site.webUrl, '/reset-password', token), label: 'Choose another password' },
  ...withoutBrowser(site, '/account/reset-password', token),
]

const notYou = ({ webUrl }: MailSite): Block => ({
  link: webUrl,
  label: 'If it was not you, choose another password at once',
})

export const ACCOUNT_MAILS = {
  /** To a new account. */
  verification: {
    subject: 'Confirm your e-mail address',
    isRateLimited: true,
    token: {
      action: 'verifyEmail',
      lifetime: VERIFICATION_LIFETIME,
      countedBy: ['user.signed-up', 'email.verification-requested'],
    },
    body: (site, { token }: TokenValue) => [
      `This address was given for an account at ${site.host}. If it was you, please confirm that it is yours.`,
      ...verifyEmail(site, 'Confirm this address', token),
      `The link works for ${hours(VERIFICATION_LIFETIME)}. If it was not you, there is nothing to do.`,
    ],
  },
  /** To the address that an account changes to. */
  emailChange: {
    subject: 'Confirm your new e-mail address',
    isRateLimited: true,
    token: {
      action: 'verifyEmail',
      lifetime: VERIFICATION_LIFETIME,
      countedBy: ['email.change-requested'],
    },
    body: (site, { token }: TokenValue) => [
      `This is to be the new address of an account at ${site.host}. It changes once you have confirmed that it is yours.`,
      ...verifyEmail(site, 'Use this address', token),
      `The link works for ${hours(VERIFICATION_LIFETIME)}. If you did not ask for it, there is nothing to do.`,
    ],
  },
  /** To the current address, when a change is requested. */
  emailChangeRequested: {
    subject: 'Your e-mail address is to be changed',
    isRateLimited: true,
    body: (site, { newEmail }: NewEmailValue) => [
      `Your account at ${site.host} is to have another address: ${newEmail}. It changes once that one is confirmed.`,
      'If it was you, there is nothing to do.',
      notYou(site),
    ],
  },
  /** To the previous address. */
  emailChanged: {
    subject: 'Your e-mail address has been changed',
    isRateLimited: true,
    body: ({ host }, { newEmail }: NewEmailValue) => [
      `Your account at ${host} now has another address: ${newEmail}. This one is no longer used.`,
      'If it was not you, please tell whoever runs the service.',
    ],
  },
  passwordReset: {
    subject: 'Choose another password',
    isRateLimited: false,
    token: { action: 'resetPassword', lifetime: RESET_LIFETIME, countedBy: ['password.reset-requested'] },
    body: (site, { token }: TokenValue) => [
      `Somebody has asked for another password for your account at ${site.host}.`,
      ...resetPassword(site, token),
      `The link works once, for ${hours(RESET_LIFETIME)}. If it was not you, there is nothing to do: your password stays.`,
    ],
  },
  passwordChanged: {
    subject: 'Your password has been changed',
    isRateLimited: true,
    body: site => [
      `The password of your account at ${site.host} has been changed, and whoever was signed in with the old one is signed out.`,
      'If it was you, there is nothing to do.',
      notYou(site),
    ],
  },
  /** To the owner of an address that is used for a sign-up or an e-mail change. Its token counts apart from `passwordReset`. */
  accountExists: {
    subject: 'You have an account already',
    isRateLimited: false,
    token: { action: 'resetPassword', lifetime: RESET_LIFETIME, countedBy: ['user.sign-up-repeated'] },
    body: (site, { token }: TokenValue) => [
      `Somebody wanted to use this address for an account at ${site.host}, where it belongs to yours.`,
      'If it was you, sign in. If you have forgotten your password, choose another one:',
      ...resetPassword(site, token),
      `The link works once, for ${hours(RESET_LIFETIME)}. If it was not you, there is nothing to do: nothing has changed.`,
    ],
  },
  accountDeleted: {
    subject: 'Your account has been deleted',
    isRateLimited: true,
    body: ({ host }) => [
      `Your account at ${host} has been deleted, with what it said about you.`,
      'If it was not you, please tell whoever runs the service.',
    ],
  },
} as const satisfies Readonly<Record<string, AccountMailKind>>

export type AccountMails = typeof ACCOUNT_MAILS

/** What the use cases send mails with. */
export type Mails = MailSender<AccountMails>
