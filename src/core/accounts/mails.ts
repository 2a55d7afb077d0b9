/** The mails of accounts, in every language; features declare theirs in their folders. Tokens in links follow `email-token.ts`. */
import { linkTo, type MailSender, type MailSite, type TranslatedMailKinds } from '../mail/kinds.ts'
import { VERIFICATION_LIFETIME } from './email-token.ts'

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

/** The values of a mail with a link to verify. */
const verification = (_: TokenValue) => ({ hours: VERIFICATION_LIFETIME / HOUR })

const TOKEN_EXAMPLE: TokenValue = { token: 'example' }

/** Confirming needs the account too, so that the owner of a mailbox never gets into a stranger's account. */
const VERIFY_REASON = {
  en: 'The link works for {hours} hours. If it was not you, open the link and press “This was not me”, or ignore this mail. Never confirm an account that somebody else has opened.',
  de: 'Der Link gilt {hours} Stunden. Wenn Sie es nicht waren, öffnen Sie den Link und wählen Sie „Das war ich nicht“, oder ignorieren Sie diese E-Mail. Bestätigen Sie nie ein Konto, das jemand anderes eröffnet hat.',
}

/** Where a user undoes what somebody else has done. */
const accountLink = ({ accountUrl }: MailSite): string => accountUrl

const NOT_YOU = {
  en: {
    button: 'Account security',
    reason: 'If it was you, you need to do nothing. If it was not you, choose a new password now.',
  },
  de: {
    button: 'Kontosicherheit',
    reason:
      'Wenn Sie es waren, müssen Sie nichts tun. Wenn Sie es nicht waren, wählen Sie jetzt ein neues Passwort.',
  },
}

const CONTACT = {
  en: 'If it was not you, please contact the operator of the service.',
  de: 'Wenn Sie es nicht waren, wenden Sie sich bitte an den Betreiber des Dienstes.',
}

export interface AccessRemovedTexts {
  /** By the kind of what was removed. */
  readonly removed: Readonly<Record<string, string>>
}

export const ACCOUNT_MAILS = {
  verification: {
    isRateLimited: true,
    link: verifyLink,
    places: verification,
    example: TOKEN_EXAMPLE,
    en: {
      subject: 'Confirm your e-mail address',
      text: 'An account at {product} was opened with this address. If it was you, please confirm that the address is yours.',
      button: 'Confirm this address',
      reason: VERIFY_REASON.en,
    },
    de: {
      subject: 'Bestätigen Sie Ihre E-Mail-Adresse',
      text: 'Mit dieser Adresse wurde ein Konto bei {product} eröffnet. Wenn Sie das waren, bestätigen Sie bitte, dass die Adresse Ihnen gehört.',
      button: 'Adresse bestätigen',
      reason: VERIFY_REASON.de,
    },
  },
  /** Sent for an account that will exist once its address is confirmed. Not limited by recipient: an address with an account gets `accountExists`. */
  signUp: {
    isRateLimited: false,
    link: verifyLink,
    places: verification,
    example: TOKEN_EXAMPLE,
    en: {
      subject: 'Confirm your e-mail address',
      text: 'Somebody has signed up at {product} with this address. If it was you, please confirm it with the password that you chose: your account is opened then.',
      button: 'Confirm this address',
      reason: VERIFY_REASON.en,
    },
    de: {
      subject: 'Bestätigen Sie Ihre E-Mail-Adresse',
      text: 'Jemand hat sich mit dieser Adresse bei {product} registriert. Wenn Sie das waren, bestätigen Sie die Adresse bitte mit dem Passwort, das Sie gewählt haben: Dann wird Ihr Konto eröffnet.',
      button: 'Adresse bestätigen',
      reason: VERIFY_REASON.de,
    },
  },
  /** Sent to the address that an account changes to, which may be a stranger's. */
  emailChange: {
    isRateLimited: 'alone',
    link: verifyLink,
    places: verification,
    example: TOKEN_EXAMPLE,
    en: {
      subject: 'Confirm your new e-mail address',
      text: 'An account at {product} wants to use this address. Please confirm that it is yours. The account changes after that.',
      button: 'Use this address',
      reason: VERIFY_REASON.en,
    },
    de: {
      subject: 'Bestätigen Sie Ihre neue E-Mail-Adresse',
      text: 'Ein Konto bei {product} soll diese Adresse verwenden. Bitte bestätigen Sie, dass sie Ihnen gehört. Erst danach ändert sich das Konto.',
      button: 'Diese Adresse verwenden',
      reason: VERIFY_REASON.de,
    },
  },
  /** Sent to the current address, when a change is requested. */
  emailChangeRequested: {
    isRateLimited: true,
    link: accountLink,
    places: ({ newEmail }: NewEmailValue) => ({ newEmail }),
    example: { newEmail: 'new@example.com' },
    en: {
      subject: 'Your e-mail address is to be changed',
      text: 'A new address was requested for your account at {product}: {newEmail}. It takes effect when it is confirmed.',
      ...NOT_YOU.en,
    },
    de: {
      subject: 'Ihre E-Mail-Adresse soll geändert werden',
      text: 'Für Ihr Konto bei {product} wurde eine neue Adresse angegeben: {newEmail}. Sie gilt, sobald sie bestätigt ist.',
      ...NOT_YOU.de,
    },
  },
  /** Sent to the previous address, when the user or an administrator has changed it. */
  emailChanged: {
    isRateLimited: true,
    places: ({ newEmail }: NewEmailValue) => ({ newEmail }),
    example: { newEmail: 'new@example.com' },
    en: {
      subject: 'Your e-mail address has been changed',
      text: 'Your account at {product} has a new address: {newEmail}. This one is no longer used.',
      reason: CONTACT.en,
    },
    de: {
      subject: 'Ihre E-Mail-Adresse wurde geändert',
      text: 'Ihr Konto bei {product} hat eine neue Adresse: {newEmail}. Diese hier wird nicht mehr verwendet.',
      reason: CONTACT.de,
    },
  },
  /** Sent to the address that an administrator has given an account. It names no other address: this one may be mistyped. */
  emailAssigned: {
    isRateLimited: true,
    en: {
      subject: 'Your account has this e-mail address now',
      text: 'An administrator has set this address for an account at {product}. The former address is no longer used.',
      reason: 'If you have no such account, please contact the operator of the service.',
    },
    de: {
      subject: 'Ihr Konto hat jetzt diese E-Mail-Adresse',
      text: 'Ein Administrator hat diese Adresse für ein Konto bei {product} eingetragen. Die frühere Adresse wird nicht mehr verwendet.',
      reason: 'Wenn Sie kein solches Konto haben, wenden Sie sich bitte an den Betreiber des Dienstes.',
    },
  },
  passwordRemoved: {
    isRateLimited: true,
    link: accountLink,
    en: {
      subject: 'Your password has been removed',
      text: 'The password of your account at {product} has been removed. You sign in another way now.',
      ...NOT_YOU.en,
    },
    de: {
      subject: 'Ihr Passwort wurde entfernt',
      text: 'Das Passwort Ihres Kontos bei {product} wurde entfernt. Sie melden sich jetzt anders an.',
      ...NOT_YOU.de,
    },
  },
  passwordReset: {
    isRateLimited: false,
    link: resetLink,
    places: (_: TokenValue) => ({}),
    example: TOKEN_EXAMPLE,
    en: {
      subject: 'Choose another password',
      text: 'A new password was requested for your account at {product}.',
      button: 'Choose another password',
      reason:
        'The link works once, for one hour. If it was not you, ignore this mail: your password stays the same.',
    },
    de: {
      subject: 'Wählen Sie ein anderes Passwort',
      text: 'Für Ihr Konto bei {product} wurde ein neues Passwort angefordert.',
      button: 'Anderes Passwort wählen',
      reason:
        'Der Link gilt einmal und eine Stunde lang. Wenn Sie es nicht waren, ignorieren Sie diese E-Mail: Ihr Passwort bleibt gleich.',
    },
  },
  passwordChanged: {
    isRateLimited: true,
    link: accountLink,
    places: (_: PasswordChangedValue) => ({}),
    example: { isFirstConfirmation: false },
    more: ({ confirmed }: { readonly confirmed: string }, { isFirstConfirmation }: PasswordChangedValue) =>
      isFirstConfirmation ? [confirmed] : [],
    en: {
      subject: 'Your password has been changed',
      text: 'The password of your account at {product} has been changed. All sessions with the old password have ended.',
      confirmed: 'This has confirmed your address.',
      ...NOT_YOU.en,
    },
    de: {
      subject: 'Ihr Passwort wurde geändert',
      text: 'Das Passwort Ihres Kontos bei {product} wurde geändert. Alle Sitzungen mit dem alten Passwort sind beendet.',
      confirmed: 'Damit ist Ihre Adresse bestätigt.',
      ...NOT_YOU.de,
    },
  },
  /**
   * When a mailed code or a reset has confirmed the address for the first time: somebody else may have opened the account. Not limited: a
   * stranger must not use up the mails before it.
   */
  accessRemoved: {
    isRateLimited: false,
    link: (site, { removed }: AccessRemovedValue) =>
      removed.some(({ kind }) => kind === 'password') ? forgotPasswordLink(site) : null,
    places: (_: AccessRemovedValue) => ({}),
    example: {
      removed: [
        { kind: 'password', count: 1 },
        { kind: 'sessions', count: 2 },
      ],
    },
    more: (texts: AccessRemovedTexts, { removed }: AccessRemovedValue) =>
      removed.map(
        ({ kind, count }) => `– ${texts.removed[kind] ?? words(kind)}${count > 1 ? `: ${count}` : ''}`,
      ),
    en: {
      subject: 'Your address is confirmed, former access is removed',
      text: 'You have confirmed the address of your account at {product} for the first time. What gave access to the account before has been removed:',
      button: 'Choose a new password',
      removed: {
        password: 'The password',
        sessions: 'Sessions',
        api_keys: 'API keys',
        passkeys: 'Passkeys',
        identities: 'Accounts of other providers',
        totp: 'The authenticator app and its recovery codes',
      },
    },
    de: {
      subject: 'Ihre Adresse ist bestätigt, früherer Zugang ist entfernt',
      text: 'Sie haben die Adresse Ihres Kontos bei {product} zum ersten Mal bestätigt. Was vorher Zugang zum Konto gab, wurde entfernt:',
      button: 'Neues Passwort wählen',
      removed: {
        password: 'Das Passwort',
        sessions: 'Sitzungen',
        api_keys: 'API-Schlüssel',
        passkeys: 'Passkeys',
        identities: 'Konten anderer Anbieter',
        totp: 'Die Authenticator-App und ihre Wiederherstellungscodes',
      },
    },
  },
  /** Sent to the owner of an address that is used for a sign-up or an e-mail change. */
  accountExists: {
    isRateLimited: false,
    link: forgotPasswordLink,
    en: {
      subject: 'You have an account already',
      text: 'This address was entered for an account at {product}, but it already belongs to your account. If it was you, sign in. If you have forgotten your password, choose a new one.',
      button: 'Choose a new password',
      reason: 'If it was not you, ignore this mail: nothing has changed.',
    },
    de: {
      subject: 'Sie haben schon ein Konto',
      text: 'Diese Adresse wurde für ein Konto bei {product} angegeben, gehört aber schon zu Ihrem Konto. Wenn Sie es waren, melden Sie sich an. Wenn Sie Ihr Passwort vergessen haben, wählen Sie ein neues.',
      button: 'Neues Passwort wählen',
      reason: 'Wenn Sie es nicht waren, ignorieren Sie diese E-Mail: Es hat sich nichts geändert.',
    },
  },
  /** Sent when an administrator has removed the factors of a user. */
  factorsRemoved: {
    isRateLimited: true,
    en: {
      subject: 'Authenticator app and passkeys have been removed from your account',
      text: 'An administrator has removed the authenticator app, the recovery codes and the passkeys of your account at {product}.',
      reason:
        'If you did not ask for it, please contact the operator of the service, and choose a new password.',
    },
    de: {
      subject: 'Authenticator-App und Passkeys Ihres Kontos wurden entfernt',
      text: 'Ein Administrator hat die Authenticator-App, die Wiederherstellungscodes und die Passkeys Ihres Kontos bei {product} entfernt.',
      reason:
        'Wenn Sie nicht darum gebeten haben, wenden Sie sich bitte an den Betreiber des Dienstes, und wählen Sie ein neues Passwort.',
    },
  },
  accountDeleted: {
    isRateLimited: true,
    en: {
      subject: 'Your account has been deleted',
      text: 'Your account at {product} and its personal data have been deleted.',
      reason: CONTACT.en,
    },
    de: {
      subject: 'Ihr Konto wurde gelöscht',
      text: 'Ihr Konto bei {product} und seine personenbezogenen Daten wurden gelöscht.',
      reason: CONTACT.de,
    },
  },
} as const satisfies TranslatedMailKinds

export type AccountMails = typeof ACCOUNT_MAILS

export type Mails = MailSender<AccountMails>
