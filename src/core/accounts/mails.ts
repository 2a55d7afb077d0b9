/** The mails of accounts, in every language; features declare theirs in their folders. Tokens in links follow `email-token.ts`. */
import {
  type Block,
  linkTo,
  type MailSender,
  type MailSite,
  type TranslatedMailKinds,
} from '../mail/kinds.ts'
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

const VERIFY_EMAIL = '/account/verify-email'
const RESET_PASSWORD = '/account/reset-password'

const HOUR = 3_600_000

/** The page where a link to choose a password can be requested. */
const forgotPasswordLink = ({ webUrl }: MailSite): string => linkTo(webUrl, '/forgot-password')

const verifyLink = ({ publicUrl }: MailSite, { token }: TokenValue): string =>
  linkTo(publicUrl, VERIFY_EMAIL, token)

const resetLink = ({ webUrl }: MailSite, { token }: TokenValue): string =>
  linkTo(webUrl, '/reset-password', token)

/** Tables of features have names like `ssh_keys`. */
const words = (kind: string): string => {
  const text = kind.replaceAll('_', ' ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

const list = (removed: readonly RemovedAccess[], labels: Readonly<Record<string, string>>): Block[] =>
  removed.map(({ kind, count }) => `– ${labels[kind] ?? words(kind)}${count > 1 ? `: ${count}` : ''}`)

/** What several mails say. */
const en = {
  hours: (milliseconds: number): string =>
    milliseconds === HOUR ? 'one hour' : `${milliseconds / HOUR} hours`,
  verifyEmail: (site: MailSite, label: string, token: string): Block[] => [
    { link: verifyLink(site, { token }), label },
    `Without a browser, send this token and the password to POST ${site.publicUrl}${VERIFY_EMAIL}:`,
    { code: token },
  ],
  /** Confirming needs the account too, so that the owner of a mailbox never gets into a stranger's account. */
  verifyEnd: (): string =>
    `The link works for ${en.hours(VERIFICATION_LIFETIME)}. If it was not you, open the link and press “This was not me”, or ignore this mail. Never confirm an account that somebody else has opened.`,
  resetPassword: (site: MailSite, token: string): Block[] => [
    { link: resetLink(site, { token }), label: 'Choose another password' },
    `Without a browser, send this token to POST ${site.publicUrl}${RESET_PASSWORD}:`,
    { code: token },
  ],
  ifYou: 'If it was you, you need to do nothing.',
  notYou: ({ accountUrl }: MailSite): Block => ({
    link: accountUrl,
    label: 'If it was not you, choose a new password now',
  }),
  notYouContact: 'If it was not you, please contact the operator of the service.',
  removed: {
    password: 'The password',
    sessions: 'Sessions',
    api_keys: 'API keys',
    passkeys: 'Passkeys',
    identities: 'Accounts of other providers',
    totp: 'The authenticator app and its recovery codes',
  },
}

const de: typeof en = {
  hours: milliseconds => (milliseconds === HOUR ? 'eine Stunde' : `${milliseconds / HOUR} Stunden`),
  verifyEmail: (site, label, token) => [
    { link: verifyLink(site, { token }), label },
    `Ohne Browser senden Sie dieses Token und das Passwort an POST ${site.publicUrl}${VERIFY_EMAIL}:`,
    { code: token },
  ],
  verifyEnd: () =>
    `Der Link gilt ${de.hours(VERIFICATION_LIFETIME)}. Wenn Sie es nicht waren, öffnen Sie den Link und wählen Sie „Das war ich nicht“, oder ignorieren Sie diese E-Mail. Bestätigen Sie nie ein Konto, das jemand anderes eröffnet hat.`,
  resetPassword: (site, token) => [
    { link: resetLink(site, { token }), label: 'Anderes Passwort wählen' },
    `Ohne Browser senden Sie dieses Token an POST ${site.publicUrl}${RESET_PASSWORD}:`,
    { code: token },
  ],
  ifYou: 'Wenn Sie es waren, müssen Sie nichts tun.',
  notYou: ({ accountUrl }) => ({
    link: accountUrl,
    label: 'Wenn Sie es nicht waren, wählen Sie jetzt ein neues Passwort',
  }),
  notYouContact: 'Wenn Sie es nicht waren, wenden Sie sich bitte an den Betreiber des Dienstes.',
  removed: {
    password: 'Das Passwort',
    sessions: 'Sitzungen',
    api_keys: 'API-Schlüssel',
    passkeys: 'Passkeys',
    identities: 'Konten anderer Anbieter',
    totp: 'Die Authenticator-App und ihre Wiederherstellungscodes',
  },
}

export const ACCOUNT_MAILS = {
  verification: {
    subject: 'Confirm your e-mail address',
    isRateLimited: true,
    link: verifyLink,
    body: (site, { token }: TokenValue) => [
      `An account at ${site.name} was opened with this address. If it was you, please confirm that the address is yours.`,
      ...en.verifyEmail(site, 'Confirm this address', token),
      en.verifyEnd(),
    ],
    de: {
      subject: 'Bestätigen Sie Ihre E-Mail-Adresse',
      body: (site, { token }: TokenValue) => [
        `Mit dieser Adresse wurde ein Konto bei ${site.name} eröffnet. Wenn Sie das waren, bestätigen Sie bitte, dass die Adresse Ihnen gehört.`,
        ...de.verifyEmail(site, 'Adresse bestätigen', token),
        de.verifyEnd(),
      ],
    },
  },
  /** Sent for an account that will exist once its address is confirmed. Not limited by recipient: an address with an account gets `accountExists`. */
  signUp: {
    subject: 'Confirm your e-mail address',
    isRateLimited: false,
    link: verifyLink,
    body: (site, { token }: TokenValue) => [
      `Somebody has signed up at ${site.name} with this address. If it was you, please confirm it with the password that you chose: your account is opened then.`,
      ...en.verifyEmail(site, 'Confirm this address', token),
      en.verifyEnd(),
    ],
    de: {
      subject: 'Bestätigen Sie Ihre E-Mail-Adresse',
      body: (site, { token }: TokenValue) => [
        `Jemand hat sich mit dieser Adresse bei ${site.name} registriert. Wenn Sie das waren, bestätigen Sie die Adresse bitte mit dem Passwort, das Sie gewählt haben: Dann wird Ihr Konto eröffnet.`,
        ...de.verifyEmail(site, 'Adresse bestätigen', token),
        de.verifyEnd(),
      ],
    },
  },
  /** Sent to the address that an account changes to, which may be a stranger's. */
  emailChange: {
    subject: 'Confirm your new e-mail address',
    isRateLimited: 'alone',
    link: verifyLink,
    body: (site, { token }: TokenValue) => [
      `An account at ${site.name} wants to use this address. Please confirm that it is yours. The account changes after that.`,
      ...en.verifyEmail(site, 'Use this address', token),
      en.verifyEnd(),
    ],
    de: {
      subject: 'Bestätigen Sie Ihre neue E-Mail-Adresse',
      body: (site, { token }: TokenValue) => [
        `Ein Konto bei ${site.name} soll diese Adresse verwenden. Bitte bestätigen Sie, dass sie Ihnen gehört. Erst danach ändert sich das Konto.`,
        ...de.verifyEmail(site, 'Diese Adresse verwenden', token),
        de.verifyEnd(),
      ],
    },
  },
  /** Sent to the current address, when a change is requested. */
  emailChangeRequested: {
    subject: 'Your e-mail address is to be changed',
    isRateLimited: true,
    body: (site, { newEmail }: NewEmailValue) => [
      `A new address was requested for your account at ${site.name}: ${newEmail}. It takes effect when it is confirmed.`,
      en.ifYou,
      en.notYou(site),
    ],
    de: {
      subject: 'Ihre E-Mail-Adresse soll geändert werden',
      body: (site, { newEmail }: NewEmailValue) => [
        `Für Ihr Konto bei ${site.name} wurde eine neue Adresse angegeben: ${newEmail}. Sie gilt, sobald sie bestätigt ist.`,
        de.ifYou,
        de.notYou(site),
      ],
    },
  },
  /** Sent to the previous address, when the user or an administrator has changed it. */
  emailChanged: {
    subject: 'Your e-mail address has been changed',
    isRateLimited: true,
    body: ({ name }, { newEmail }: NewEmailValue) => [
      `Your account at ${name} has a new address: ${newEmail}. This one is no longer used.`,
      en.notYouContact,
    ],
    de: {
      subject: 'Ihre E-Mail-Adresse wurde geändert',
      body: ({ name }, { newEmail }: NewEmailValue) => [
        `Ihr Konto bei ${name} hat eine neue Adresse: ${newEmail}. Diese hier wird nicht mehr verwendet.`,
        de.notYouContact,
      ],
    },
  },
  /** Sent to the address that an administrator has given an account. It names no other address: this one may be mistyped. */
  emailAssigned: {
    subject: 'Your account has this e-mail address now',
    isRateLimited: true,
    body: ({ name }) => [
      `An administrator has set this address for an account at ${name}. The former address is no longer used.`,
      'If you have no such account, please contact the operator of the service.',
    ],
    de: {
      subject: 'Ihr Konto hat jetzt diese E-Mail-Adresse',
      body: ({ name }) => [
        `Ein Administrator hat diese Adresse für ein Konto bei ${name} eingetragen. Die frühere Adresse wird nicht mehr verwendet.`,
        'Wenn Sie kein solches Konto haben, wenden Sie sich bitte an den Betreiber des Dienstes.',
      ],
    },
  },
  passwordRemoved: {
    subject: 'Your password has been removed',
    isRateLimited: true,
    body: site => [
      `The password of your account at ${site.name} has been removed. You sign in another way now.`,
      en.ifYou,
      en.notYou(site),
    ],
    de: {
      subject: 'Ihr Passwort wurde entfernt',
      body: site => [
        `Das Passwort Ihres Kontos bei ${site.name} wurde entfernt. Sie melden sich jetzt anders an.`,
        de.ifYou,
        de.notYou(site),
      ],
    },
  },
  passwordReset: {
    subject: 'Choose another password',
    isRateLimited: false,
    link: resetLink,
    body: (site, { token }: TokenValue) => [
      `A new password was requested for your account at ${site.name}.`,
      ...en.resetPassword(site, token),
      `The link works once, for ${en.hours(RESET_LIFETIME)}. If it was not you, ignore this mail: your password stays the same.`,
    ],
    de: {
      subject: 'Wählen Sie ein anderes Passwort',
      body: (site, { token }: TokenValue) => [
        `Für Ihr Konto bei ${site.name} wurde ein neues Passwort angefordert.`,
        ...de.resetPassword(site, token),
        `Der Link gilt einmal und ${de.hours(RESET_LIFETIME)} lang. Wenn Sie es nicht waren, ignorieren Sie diese E-Mail: Ihr Passwort bleibt gleich.`,
      ],
    },
  },
  passwordChanged: {
    subject: 'Your password has been changed',
    isRateLimited: true,
    body: (site, { isFirstConfirmation }: PasswordChangedValue) => [
      `The password of your account at ${site.name} has been changed. All sessions with the old password have ended.`,
      ...(isFirstConfirmation ? ['This has confirmed your address.'] : []),
      en.ifYou,
      en.notYou(site),
    ],
    de: {
      subject: 'Ihr Passwort wurde geändert',
      body: (site, { isFirstConfirmation }: PasswordChangedValue) => [
        `Das Passwort Ihres Kontos bei ${site.name} wurde geändert. Alle Sitzungen mit dem alten Passwort sind beendet.`,
        ...(isFirstConfirmation ? ['Damit ist Ihre Adresse bestätigt.'] : []),
        de.ifYou,
        de.notYou(site),
      ],
    },
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
      ...list(removed, en.removed),
      ...(removed.some(({ kind }) => kind === 'password')
        ? [{ link: forgotPasswordLink(site), label: 'Choose a new password' }]
        : []),
    ],
    de: {
      subject: 'Ihre Adresse ist bestätigt, früherer Zugang ist entfernt',
      body: (site, { removed }: AccessRemovedValue) => [
        `Sie haben die Adresse Ihres Kontos bei ${site.name} zum ersten Mal bestätigt. Was vorher Zugang zum Konto gab, wurde entfernt:`,
        ...list(removed, de.removed),
        ...(removed.some(({ kind }) => kind === 'password')
          ? [{ link: forgotPasswordLink(site), label: 'Neues Passwort wählen' }]
          : []),
      ],
    },
  },
  /** Sent to the owner of an address that is used for a sign-up or an e-mail change. */
  accountExists: {
    subject: 'You have an account already',
    isRateLimited: false,
    body: site => [
      `This address was entered for an account at ${site.name}, but it already belongs to your account.`,
      'If it was you, sign in.',
      { link: forgotPasswordLink(site), label: 'If you have forgotten your password, choose a new one' },
      'If it was not you, ignore this mail: nothing has changed.',
    ],
    de: {
      subject: 'Sie haben schon ein Konto',
      body: site => [
        `Diese Adresse wurde für ein Konto bei ${site.name} angegeben, gehört aber schon zu Ihrem Konto.`,
        'Wenn Sie es waren, melden Sie sich an.',
        {
          link: forgotPasswordLink(site),
          label: 'Wenn Sie Ihr Passwort vergessen haben, wählen Sie ein neues',
        },
        'Wenn Sie es nicht waren, ignorieren Sie diese E-Mail: Es hat sich nichts geändert.',
      ],
    },
  },
  /** Sent when an administrator has removed the factors of a user. */
  factorsRemoved: {
    subject: 'Authenticator app and passkeys have been removed from your account',
    isRateLimited: true,
    body: site => [
      `An administrator has removed the authenticator app, the recovery codes and the passkeys of your account at ${site.name}.`,
      'If you did not ask for it, please contact the operator of the service, and choose a new password.',
    ],
    de: {
      subject: 'Authenticator-App und Passkeys Ihres Kontos wurden entfernt',
      body: site => [
        `Ein Administrator hat die Authenticator-App, die Wiederherstellungscodes und die Passkeys Ihres Kontos bei ${site.name} entfernt.`,
        'Wenn Sie nicht darum gebeten haben, wenden Sie sich bitte an den Betreiber des Dienstes, und wählen Sie ein neues Passwort.',
      ],
    },
  },
  accountDeleted: {
    subject: 'Your account has been deleted',
    isRateLimited: true,
    body: ({ name }) => [
      `Your account at ${name} and its personal data have been deleted.`,
      en.notYouContact,
    ],
    de: {
      subject: 'Ihr Konto wurde gelöscht',
      body: ({ name }) => [
        `Ihr Konto bei ${name} und seine personenbezogenen Daten wurden gelöscht.`,
        de.notYouContact,
      ],
    },
  },
} as const satisfies TranslatedMailKinds

export type AccountMails = typeof ACCOUNT_MAILS

export type Mails = MailSender<AccountMails>
