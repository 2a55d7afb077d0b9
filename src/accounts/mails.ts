/** The mails of accounts. Each kind is declared here and nowhere else. Tokens in links follow `email-token.ts`. */
import { type Block, linkTo, type MailKinds, type MailSender, type MailSite } from '../mail/kinds.ts'
import { RESET_LIFETIME, VERIFICATION_LIFETIME } from './email-token.ts'

export interface TokenValue {
  readonly token: string
}

export interface NewEmailValue {
  readonly newEmail: string
}

/** What gave access to an account until it was emptied. */
export interface RemovedAccess {
  /** `sessions`, the name of a factor, or that of a table with `grantsAccess`. */
  readonly kind: string
  readonly count: number
}

export interface AccessRemovedValue {
  /** What gave access to the account until its address was confirmed for the first time. */
  readonly removed: readonly RemovedAccess[]
}

export interface PasswordChangedValue {
  /** Whether the change has confirmed the address, by a mailed link, and so emptied the account. */
  readonly isFirstConfirmation: boolean
}

/** Routes that take a token. */
const VERIFY_EMAIL = '/account/verify-email'
const RESET_PASSWORD = '/account/reset-password'

const hours = (milliseconds: number): string => {
  const count = milliseconds / 3_600_000
  return count === 1 ? 'one hour' : `${count} hours`
}

/** The page where a link to choose a password can be requested. */
const forgotPasswordLink = ({ webUrl }: MailSite): string => linkTo(webUrl, '/forgot-password')

const withoutBrowser = ({ publicUrl }: MailSite, path: string, token: string, also = ''): Block[] => [
  `Without a browser, send this token${also} to POST ${publicUrl}${path}:`,
  { code: token },
]

const verifyLink = ({ publicUrl }: MailSite, { token }: TokenValue): string =>
  linkTo(publicUrl, VERIFY_EMAIL, token)

const resetLink = ({ webUrl }: MailSite, { token }: TokenValue): string =>
  linkTo(webUrl, '/reset-password', token)

const verifyEmail = (site: MailSite, label: string, token: string): Block[] => [
  { link: verifyLink(site, { token }), label },
  ...withoutBrowser(site, VERIFY_EMAIL, token, ' and the password'),
]

/** Confirming needs the account too, so that the owner of a mailbox never gets into a stranger's account. */
const NOT_YOU_ON_PAGE =
  'If it was not you, open the link and press “This was not me”, or ignore this mail. Never confirm an account that somebody else has opened.'

const resetPassword = (site: MailSite, token: string): Block[] => [
  { link: resetLink(site, { token }), label: 'Choose another password' },
  ...withoutBrowser(site, RESET_PASSWORD, token),
]

const notYou = ({ accountUrl }: MailSite): Block => ({
  link: accountUrl,
  label: 'If it was not you, choose a new password now',
})

const LABELS: Readonly<Record<string, string>> = {
  password: 'The password',
  sessions: 'Sessions',
  api_keys: 'API keys',
  passkeys: 'Passkeys',
  totp: 'The authenticator app and its recovery codes',
}

/** Tables of features have names like `ssh_keys`. */
const labelOf = (kind: string): string => {
  const words = kind.replaceAll('_', ' ')
  return LABELS[kind] ?? words.charAt(0).toUpperCase() + words.slice(1)
}

const list = (removed: readonly RemovedAccess[]): Block[] =>
  removed.map(({ kind, count }) => `– ${labelOf(kind)}${count > 1 ? `: ${count}` : ''}`)

export const ACCOUNT_MAILS = {
  /** To a new account. */
  verification: {
    subject: 'Confirm your e-mail address',
    isRateLimited: true,
    link: verifyLink,
    body: (site, { token }: TokenValue) => [
      `An account at ${site.name} was opened with this address. If it was you, please confirm that the address is yours.`,
      ...verifyEmail(site, 'Confirm this address', token),
      `The link works for ${hours(VERIFICATION_LIFETIME)}. ${NOT_YOU_ON_PAGE}`,
    ],
  },
  /** For an account that will exist once its address is confirmed. Not limited by recipient: an address with an account gets `accountExists`. */
  signUp: {
    subject: 'Confirm your e-mail address',
    isRateLimited: false,
    link: verifyLink,
    body: (site, { token }: TokenValue) => [
      `Somebody has signed up at ${site.name} with this address. If it was you, please confirm it with the password that you chose: your account is opened then.`,
      ...verifyEmail(site, 'Confirm this address', token),
      `The link works for ${hours(VERIFICATION_LIFETIME)}. ${NOT_YOU_ON_PAGE}`,
    ],
  },
  /** To the address that an account changes to. */
  emailChange: {
    subject: 'Confirm your new e-mail address',
    isRateLimited: true,
    link: verifyLink,
    body: (site, { token }: TokenValue) => [
      `An account at ${site.name} wants to use this address. Please confirm that it is yours. The account changes after that.`,
      ...verifyEmail(site, 'Use this address', token),
      `The link works for ${hours(VERIFICATION_LIFETIME)}. ${NOT_YOU_ON_PAGE}`,
    ],
  },
  /** To the current address, when a change is requested. */
  emailChangeRequested: {
    subject: 'Your e-mail address is to be changed',
    isRateLimited: true,
    body: (site, { newEmail }: NewEmailValue) => [
      `A new address was requested for your account at ${site.name}: ${newEmail}. It takes effect when it is confirmed.`,
      'If it was you, you need to do nothing.',
      notYou(site),
    ],
  },
  /** To the previous address, when the user or an administrator has changed it. */
  emailChanged: {
    subject: 'Your e-mail address has been changed',
    isRateLimited: true,
    body: ({ name }, { newEmail }: NewEmailValue) => [
      `Your account at ${name} has a new address: ${newEmail}. This one is no longer used.`,
      'If it was not you, please contact the operator of the service.',
    ],
  },
  /** To the address that an administrator has given an account. It names no other address: this one may be mistyped. */
  emailAssigned: {
    subject: 'Your account has this e-mail address now',
    isRateLimited: true,
    body: ({ name }) => [
      `An administrator has set this address for an account at ${name}. The former address is no longer used.`,
      'If you have no such account, please contact the operator of the service.',
    ],
  },
  passwordRemoved: {
    subject: 'Your password has been removed',
    isRateLimited: true,
    body: site => [
      `The password of your account at ${site.name} has been removed. You sign in another way now.`,
      'If it was you, you need to do nothing.',
      notYou(site),
    ],
  },
  passwordReset: {
    subject: 'Choose another password',
    isRateLimited: false,
    link: resetLink,
    body: (site, { token }: TokenValue) => [
      `A new password was requested for your account at ${site.name}.`,
      ...resetPassword(site, token),
      `The link works once, for ${hours(RESET_LIFETIME)}. If it was not you, ignore this mail: your password stays the same.`,
    ],
  },
  passwordChanged: {
    subject: 'Your password has been changed',
    isRateLimited: true,
    body: (site, { isFirstConfirmation }: PasswordChangedValue) => [
      `The password of your account at ${site.name} has been changed. All sessions with the old password have ended.`,
      ...(isFirstConfirmation ? ['This has confirmed your address.'] : []),
      'If it was you, you need to do nothing.',
      notYou(site),
    ],
  },
  /**
   * When a mailed code or a reset has confirmed the address for the first time: somebody else may have opened the account. Not limited: a
   * stranger must not use up the mails before it.
   */
  accessRemoved: {
    subject: 'Your address is confirmed, former access is removed',
    isRateLimited: false,
    body: (site, { removed }: AccessRemovedValue) => [
      `You have confirmed the address of your account at ${site.name} for the first time. What gave access to the account before has been removed:`,
      ...list(removed),
      ...(removed.some(({ kind }) => kind === 'password')
        ? [{ link: forgotPasswordLink(site), label: 'Choose a new password' }]
        : []),
    ],
  },
  /** To the owner of an address that is used for a sign-up or an e-mail change. */
  accountExists: {
    subject: 'You have an account already',
    isRateLimited: false,
    body: site => [
      `This address was entered for an account at ${site.name}, but it already belongs to your account.`,
      'If it was you, sign in.',
      { link: forgotPasswordLink(site), label: 'If you have forgotten your password, choose a new one' },
      'If it was not you, ignore this mail: nothing has changed.',
    ],
  },
  /** By an administrator. */
  factorsRemoved: {
    subject: 'Authenticator app and passkeys have been removed from your account',
    isRateLimited: true,
    body: site => [
      `An administrator has removed the authenticator app, the recovery codes and the passkeys of your account at ${site.name}.`,
      'If you did not ask for it, please contact the operator of the service, and choose a new password.',
    ],
  },
  accountDeleted: {
    subject: 'Your account has been deleted',
    isRateLimited: true,
    body: ({ name }) => [
      `Your account at ${name} and its personal data have been deleted.`,
      'If it was not you, please contact the operator of the service.',
    ],
  },
} as const satisfies MailKinds

export type AccountMails = typeof ACCOUNT_MAILS

/** What the use cases send mails with. */
export type Mails = MailSender<AccountMails>
