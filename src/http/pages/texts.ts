/** The texts of the hosted pages of the core; features have theirs in their `pages.ts`. A language that lacks one does not compile. */
import type { ErrorName } from '#base/errors'

const en = {
  errorTitle: 'Error',
  problem: 'Please check this',
  optional: 'optional',

  email: 'E-mail',
  password: 'Password',
  newPassword: 'New password',
  currentPassword: 'Current password',
  code: 'Code',
  codeHint: 'Six digits from your authenticator app, or a recovery code.',
  passwordHint: (length: number) => `At least ${length} characters. Several words make a good password.`,

  signIn: 'Sign in',
  signOut: 'Sign out',
  backToSignIn: 'Back to sign-in',
  backToSecurity: 'Back to account security',
  secondStep: 'Your account needs a code too. Please enter your password again, and the code.',
  forgotLink: 'Forgot your password?',
  or: 'or',
  signInLost: 'You are not signed in',
  signInLostText:
    'If you have just signed in, your browser has not kept the cookie. Allow cookies for this site, and open it with https. Then sign in again.',
  severalUsers: 'You are signed in to several accounts',
  severalUsersText: 'It is not clear which one you mean. Sign out of all of them, then sign in again.',
  signOutOfAll: 'Sign out of all',

  signUp: 'Create an account',
  signUpButton: 'Create the account',
  firstName: 'First name',
  lastName: 'Last name',
  terms: ['By creating an account you accept the ', 'terms of use', '.'],
  toSignIn: 'You have an account already? Sign in',
  signUpSent: 'Check your mail',
  signUpSentText: (email: string) =>
    `A mail to ${email} is on its way. Open its link within a day, and enter your password, to open your account.`,

  forgot: 'Forgot your password?',
  forgotText: 'Enter the e-mail of your account. We send you a link to choose a new password.',
  forgotButton: 'Send the link',
  forgotSent: 'Check your mail',
  forgotSentText: 'If there is an account with this e-mail, a link is on its way. It works for one hour.',

  reset: 'Choose a new password',
  resetText: 'All devices that are signed in to your account are signed out.',
  resetButton: 'Save the password',
  resetSecondStep:
    'Your account needs a code too. Please enter the new password again, and the code. The link still works.',
  askAgain: 'Ask for a new link',

  confirmEmail: 'Confirm your e-mail',
  confirmEmailText: {
    account: (email: string) => `Confirm that ${email} is the e-mail of your account.`,
    emailChange: (email: string) => `Confirm that your account shall use ${email} from now on.`,
    signUp: (email: string) => `Confirm ${email} to open your account.`,
  },
  confirmEmailPasswordHint: {
    account: 'The password of the account.',
    emailChange: 'The password of the account that shall use this address.',
    signUp: 'The password that you chose when you signed up.',
  },
  confirmEmailSecondStep: 'The account needs a code too. Please enter the password again, and the code.',
  confirmEmailButton: 'Confirm',
  notMe: 'This was not me',
  notMeText: {
    account: 'Somebody else has opened an account with your address? Then remove the account.',
    emailChange: 'Somebody else wants to use your address? Then end that.',
    signUp: 'Somebody else has signed up with your address? Then remove the sign-up.',
  },
  notMeDone: 'Thank you',
  notMeDoneText: {
    account: 'The account is removed.',
    emailChange: 'The change is ended. The account does not use your address.',
    signUp: 'The sign-up is removed.',
  },
  confirmEmailFailed: 'The e-mail is not confirmed',
  emailConfirmed: 'Your e-mail is confirmed',
  emailConfirmedText: (email: string) => `Your account uses ${email}.`,
  toSecurity: 'Account security',
  deadLink: 'This link does not work any more',
  deadLinkText:
    'It was used already, it has expired, or it is not complete. If you have just used it, all is well: sign in.',

  security: 'Account security',
  signedInAs: (email: string) => `Signed in as ${email}`,
  emailNotConfirmed: 'Your e-mail is not confirmed yet.',
  resendButton: 'Send the link again',
  alreadyGone: 'Already done',
  notices: {
    password: 'Your password is changed. Other devices are signed out.',
    passwordRemoved: 'Your password is removed.',
    session: 'The session has ended.',
    sessions: 'All other sessions have ended.',
    mailSent: 'A mail with a link is on its way.',
    proof: 'Thank you. For ten minutes you can change everything here.',
  },
  changePassword: 'Password',
  changePasswordButton: 'Change the password',
  noPassword: 'Your account has no password.',
  addPassword: 'Choose a password',
  removePassword: 'Remove the password',
  sessions: 'Sessions',
  sessionsText: 'Devices and programs that are signed in to your account.',
  unknownClient: 'Unknown device',
  thisSession: 'this session',
  impersonatedSession: 'opened by an administrator',
  sessionSince: 'Since',
  lastUsed: 'last used',
  unused: 'not used yet',
  endSession: 'End',
  endSessionOf: (client: string) => `End the session of ${client}`,
  endOthers: 'End all other sessions',
  proof: 'Confirm that it is you',
  proofPassword: 'This needs your password.',
  proofSignIn: 'This needs a recent sign-in. Please sign in again, and come back.',
  proofCode: 'This needs a code.',
  proofButton: 'Continue',

  failed: 'This did not work',

  /** Errors of the API, by their names in `src/base/errors.ts`. */
  errors: {
    wrongCredentials: 'The e-mail or the password is wrong.',
    secondFactorRequired: 'Enter a code.',
    wrongSecondFactor: 'The code is wrong or was used already.',
    wrongPassword: 'The password is wrong.',
    wrongCurrentPassword: 'The password is wrong.',
    passwordIsEmail: 'The password must not be your e-mail. Choose another one.',
    newPasswordIsEmail: 'The password must not be your e-mail. Choose another one.',
    passwordBreached:
      'This password is known from data breaches. Choose another one that you use nowhere else.',
    newPasswordBreached:
      'This password is known from data breaches. Choose another one that you use nowhere else.',
    newPasswordIsCurrent: 'This is your current password. Choose another one.',
    emailTaken: 'Another account uses this e-mail.',
    emailNotVerified: 'Your e-mail is not confirmed yet. Follow the link in the mail that we sent you.',
    accountDisabled: 'This account is disabled.',
    accountProofRequired: 'Enter the password of the account.',
    impersonated: 'Administrators who act as you cannot do this.',
    csrf: 'This form was sent from another site.',
    signInRequired: 'Your session has ended. Sign in again.',
    severalUsers: 'You are signed in to several accounts. Sign out, then sign in again.',
    sessionNotFound: 'This session has ended already.',
    tooManyRequests: 'That was too often. Wait a moment, then try again.',
    bodyTooLarge: 'This is too long.',
    overloaded: 'The service is busy. Try again in a moment.',
    storeUnavailable: 'The service is not available now. Try again in a moment.',
    draining: 'The service is restarting. Try again in a moment.',
    internalError: 'Something went wrong. Try again.',
  } satisfies Partial<Record<ErrorName, string>>,
  /** Rules of input, by the messages of the API. */
  rules: {
    required: 'This is required.',
    unknown: 'The link or the form has something that does not belong to it.',
    minLength: (count: number) => `At least ${count} characters are needed.`,
    maxLength: (count: number) => `At most ${count} characters are allowed.`,
    email: 'This is not an e-mail address.',
    common: 'Many people use this password. Choose another one.',
    blank: 'The password needs visible characters.',
    repeated: 'The password repeats a short part. Add something else.',
    pattern: 'The password is a sequence or a row of keys. Choose another one.',
    characters: 'These characters are not allowed.',
  },
}

export type Texts = typeof en

const de: Texts = {
  errorTitle: 'Fehler',
  problem: 'Bitte prüfen',
  optional: 'freiwillig',

  email: 'E-Mail',
  password: 'Passwort',
  newPassword: 'Neues Passwort',
  currentPassword: 'Bisheriges Passwort',
  code: 'Code',
  codeHint: 'Sechs Ziffern aus Ihrer Authenticator-App oder ein Wiederherstellungscode.',
  passwordHint: length => `Mindestens ${length} Zeichen. Mehrere Wörter sind ein gutes Passwort.`,

  signIn: 'Anmelden',
  signOut: 'Abmelden',
  backToSignIn: 'Zurück zur Anmeldung',
  backToSecurity: 'Zurück zur Kontosicherheit',
  secondStep:
    'Ihr Konto braucht auch einen Code. Bitte geben Sie das Passwort noch einmal ein, und den Code.',
  forgotLink: 'Passwort vergessen?',
  or: 'oder',
  signInLost: 'Sie sind nicht angemeldet',
  signInLostText:
    'Wenn Sie sich gerade angemeldet haben, hat Ihr Browser das Cookie nicht behalten. Erlauben Sie Cookies für diese Website und öffnen Sie sie mit https. Melden Sie sich dann noch einmal an.',
  severalUsers: 'Sie sind bei mehreren Konten angemeldet',
  severalUsersText:
    'Welches Sie meinen, ist nicht klar. Melden Sie sich von allen ab und dann noch einmal an.',
  signOutOfAll: 'Von allen abmelden',

  signUp: 'Konto erstellen',
  signUpButton: 'Konto erstellen',
  firstName: 'Vorname',
  lastName: 'Nachname',
  terms: ['Mit der Registrierung akzeptieren Sie die ', 'Nutzungsbedingungen', '.'],
  toSignIn: 'Sie haben schon ein Konto? Anmelden',
  signUpSent: 'Sehen Sie in Ihre Mails',
  signUpSentText: email =>
    `Eine Mail an ${email} ist unterwegs. Öffnen Sie deren Link innerhalb eines Tages und geben Sie Ihr Passwort ein: Dann wird Ihr Konto eröffnet.`,

  forgot: 'Passwort vergessen?',
  forgotText:
    'Geben Sie die E-Mail-Adresse Ihres Kontos ein. Wir senden Ihnen einen Link, mit dem Sie ein neues Passwort wählen.',
  forgotButton: 'Link senden',
  forgotSent: 'Sehen Sie in Ihre Mails',
  forgotSentText:
    'Wenn es ein Konto mit dieser E-Mail-Adresse gibt, ist ein Link unterwegs. Er gilt eine Stunde.',

  reset: 'Neues Passwort wählen',
  resetText: 'Alle Geräte, die an Ihrem Konto angemeldet sind, werden abgemeldet.',
  resetButton: 'Passwort speichern',
  resetSecondStep:
    'Ihr Konto braucht auch einen Code. Bitte geben Sie das neue Passwort noch einmal ein, und den Code. Der Link gilt weiter.',
  askAgain: 'Neuen Link anfordern',

  confirmEmail: 'E-Mail-Adresse bestätigen',
  confirmEmailText: {
    account: email => `Bestätigen Sie, dass ${email} die E-Mail-Adresse Ihres Kontos ist.`,
    emailChange: email => `Bestätigen Sie, dass Ihr Konto ab jetzt ${email} verwenden soll.`,
    signUp: email => `Bestätigen Sie ${email}, um Ihr Konto zu eröffnen.`,
  },
  confirmEmailPasswordHint: {
    account: 'Das Passwort des Kontos.',
    emailChange: 'Das Passwort des Kontos, das diese Adresse verwenden soll.',
    signUp: 'Das Passwort, das Sie bei der Registrierung gewählt haben.',
  },
  confirmEmailSecondStep:
    'Das Konto braucht auch einen Code. Bitte geben Sie das Passwort noch einmal ein, und den Code.',
  confirmEmailButton: 'Bestätigen',
  notMe: 'Das war ich nicht',
  notMeText: {
    account: 'Jemand anderes hat mit Ihrer Adresse ein Konto eröffnet? Dann entfernen Sie das Konto.',
    emailChange: 'Jemand anderes will Ihre Adresse verwenden? Dann beenden Sie das.',
    signUp: 'Jemand anderes hat sich mit Ihrer Adresse registriert? Dann entfernen Sie die Registrierung.',
  },
  notMeDone: 'Danke',
  notMeDoneText: {
    account: 'Das Konto ist entfernt.',
    emailChange: 'Die Änderung ist beendet. Das Konto verwendet Ihre Adresse nicht.',
    signUp: 'Die Registrierung ist entfernt.',
  },
  confirmEmailFailed: 'Die E-Mail-Adresse ist nicht bestätigt',
  emailConfirmed: 'Ihre E-Mail-Adresse ist bestätigt',
  emailConfirmedText: email => `Ihr Konto verwendet ${email}.`,
  toSecurity: 'Kontosicherheit',
  deadLink: 'Dieser Link gilt nicht mehr',
  deadLinkText:
    'Er wurde schon benutzt, ist abgelaufen oder nicht vollständig. Wenn Sie ihn gerade benutzt haben, ist alles gut: melden Sie sich an.',

  security: 'Kontosicherheit',
  signedInAs: email => `Angemeldet als ${email}`,
  emailNotConfirmed: 'Ihre E-Mail-Adresse ist noch nicht bestätigt.',
  resendButton: 'Link noch einmal senden',
  alreadyGone: 'Schon erledigt',
  notices: {
    password: 'Ihr Passwort ist geändert. Andere Geräte sind abgemeldet.',
    passwordRemoved: 'Ihr Passwort ist entfernt.',
    session: 'Die Sitzung ist beendet.',
    sessions: 'Alle anderen Sitzungen sind beendet.',
    mailSent: 'Eine Mail mit einem Link ist unterwegs.',
    proof: 'Danke. Zehn Minuten lang können Sie hier alles ändern.',
  },
  changePassword: 'Passwort',
  changePasswordButton: 'Passwort ändern',
  noPassword: 'Ihr Konto hat kein Passwort.',
  addPassword: 'Passwort wählen',
  removePassword: 'Passwort entfernen',
  sessions: 'Sitzungen',
  sessionsText: 'Geräte und Programme, die an Ihrem Konto angemeldet sind.',
  unknownClient: 'Unbekanntes Gerät',
  thisSession: 'diese Sitzung',
  impersonatedSession: 'von der Verwaltung geöffnet',
  sessionSince: 'Seit',
  lastUsed: 'zuletzt benutzt',
  unused: 'noch nicht benutzt',
  endSession: 'Beenden',
  endSessionOf: client => `Sitzung von ${client} beenden`,
  endOthers: 'Alle anderen Sitzungen beenden',
  proof: 'Bestätigen Sie, dass Sie es sind',
  proofPassword: 'Dafür ist Ihr Passwort nötig.',
  proofSignIn:
    'Dafür müssen Sie sich vor Kurzem angemeldet haben. Bitte melden Sie sich erneut an und kommen Sie zurück.',
  proofCode: 'Dafür ist ein Code nötig.',
  proofButton: 'Weiter',

  failed: 'Das hat nicht funktioniert',

  errors: {
    wrongCredentials: 'Die E-Mail-Adresse oder das Passwort ist falsch.',
    secondFactorRequired: 'Geben Sie einen Code ein.',
    wrongSecondFactor: 'Der Code ist falsch oder wurde schon benutzt.',
    wrongPassword: 'Das Passwort ist falsch.',
    wrongCurrentPassword: 'Das Passwort ist falsch.',
    passwordIsEmail: 'Das Passwort darf nicht Ihre E-Mail-Adresse sein. Wählen Sie ein anderes.',
    newPasswordIsEmail: 'Das Passwort darf nicht Ihre E-Mail-Adresse sein. Wählen Sie ein anderes.',
    passwordBreached:
      'Dieses Passwort ist aus Datenlecks bekannt. Wählen Sie ein anderes, das Sie sonst nirgends verwenden.',
    newPasswordBreached:
      'Dieses Passwort ist aus Datenlecks bekannt. Wählen Sie ein anderes, das Sie sonst nirgends verwenden.',
    newPasswordIsCurrent: 'Das ist Ihr bisheriges Passwort. Wählen Sie ein anderes.',
    emailTaken: 'Ein anderes Konto verwendet diese E-Mail-Adresse.',
    emailNotVerified:
      'Ihre E-Mail-Adresse ist noch nicht bestätigt. Folgen Sie dem Link in der Mail, die wir Ihnen gesendet haben.',
    accountDisabled: 'Dieses Konto ist gesperrt.',
    accountProofRequired: 'Geben Sie das Passwort des Kontos ein.',
    impersonated: 'Wer in Ihrem Namen handelt, kann das nicht tun.',
    csrf: 'Dieses Formular wurde von einer anderen Website gesendet.',
    signInRequired: 'Ihre Sitzung ist beendet. Melden Sie sich noch einmal an.',
    severalUsers: 'Sie sind bei mehreren Konten angemeldet. Melden Sie sich ab und dann noch einmal an.',
    sessionNotFound: 'Diese Sitzung ist schon beendet.',
    tooManyRequests: 'Das war zu oft. Warten Sie einen Moment und versuchen Sie es noch einmal.',
    bodyTooLarge: 'Das ist zu lang.',
    overloaded: 'Der Dienst ist ausgelastet. Versuchen Sie es gleich noch einmal.',
    storeUnavailable: 'Der Dienst ist gerade nicht verfügbar. Versuchen Sie es gleich noch einmal.',
    draining: 'Der Dienst startet neu. Versuchen Sie es gleich noch einmal.',
    internalError: 'Etwas ist schiefgegangen. Versuchen Sie es noch einmal.',
  },
  rules: {
    required: 'Das ist erforderlich.',
    unknown: 'Der Link oder das Formular enthält etwas, das nicht dazugehört.',
    minLength: count => `Mindestens ${count} Zeichen sind nötig.`,
    maxLength: count => `Höchstens ${count} Zeichen sind erlaubt.`,
    email: 'Das ist keine E-Mail-Adresse.',
    common: 'Viele verwenden dieses Passwort. Wählen Sie ein anderes.',
    blank: 'Das Passwort braucht sichtbare Zeichen.',
    repeated: 'Das Passwort wiederholt einen kurzen Teil. Fügen Sie etwas anderes hinzu.',
    pattern: 'Das Passwort ist eine Folge oder eine Reihe von Tasten. Wählen Sie ein anderes.',
    characters: 'Diese Zeichen sind nicht erlaubt.',
  },
}

/** Texts by language. The first language is the fallback. */
export const LANGUAGES = { en, de } as const satisfies Readonly<Record<string, Texts>>

export type Language = keyof typeof LANGUAGES

const [DEFAULT_LANGUAGE] = Object.keys(LANGUAGES) as [Language]

/** @param choose picks the language that the browser likes best of some, or `false`. */
export const acceptedLanguage = (choose: (languages: string[]) => string | string[] | false): Language => {
  const chosen = choose(Object.keys(LANGUAGES))
  return typeof chosen === 'string' && Object.hasOwn(LANGUAGES, chosen)
    ? (chosen as Language)
    : DEFAULT_LANGUAGE
}
