/** What values, scopes and errors of the API say to people. Features declare theirs in their `ConsoleParts`. */
import type { ErrorName } from '#base/errors'
import type { ADMIN_SCOPES } from '#core/auth/scopes'
import type { Text } from '#http/pages/feature-pages'

const word = (en: string, de: string): Text => ({ en, de })

/** Values of properties and labels: ways to sign in and their outcomes, methods of RFC 8176, states. */
export const CORE_WORDS: Readonly<Record<string, Text>> = {
  password: word('Password', 'Passwort'),
  emailConfirmation: word('Confirmation mail', 'Bestätigungsmail'),
  passkey: word('Passkey', 'Passkey'),
  emailCode: word('Code by mail', 'Code per Mail'),
  magicLink: word('Link by mail', 'Link per Mail'),
  identity: word('Provider', 'Anbieter'),
  fed: word('Provider', 'Anbieter'),
  pop: word('Passkey', 'Passkey'),
  user: word('Verified by the device', 'Vom Gerät geprüft'),
  totp: word('App', 'App'),
  impersonation: word('Administrator', 'Verwaltung'),
  pwd: word('Password', 'Passwort'),
  otp: word('Code', 'Code'),
  mfa: word('Two factors', 'Zwei Faktoren'),
  succeeded: word('succeeded', 'gelungen'),
  failed: word('failed', 'fehlgeschlagen'),
  wrong_credentials: word('wrong password', 'falsches Passwort'),
  code_required: word('code needed', 'Code nötig'),
  wrong_code: word('wrong code', 'falscher Code'),
  account_disabled: word('disabled', 'gesperrt'),
  email_not_verified: word('not confirmed', 'nicht bestätigt'),
  email_taken: word('e-mail in use', 'E-Mail vergeben'),
  throttled: word('slowed down', 'gebremst'),
  overloaded: word('overloaded', 'überlastet'),
  cancelled: word('cancelled', 'abgebrochen'),
  hour: word('hour', 'Stunde'),
  day: word('day', 'Tag'),
  '30 days': word('30 days', '30 Tage'),
  development: word('Development', 'Entwicklung'),
  production: word('Production', 'Produktion'),
  test: word('Test', 'Test'),
  files: word('Files', 'Dateien'),
  smtp: word('SMTP', 'SMTP'),
  off: word('Off', 'Aus'),
}

export const CORE_SCOPES: Readonly<Record<keyof typeof ADMIN_SCOPES, string>> = {
  'users:read': 'Nutzer auflisten und lesen',
  'users:write':
    'Nutzer hinzufügen, Namen und Metadaten ändern, sperren, Sitzungen beenden, API-Schlüssel widerrufen, Links senden',
  'users:identity': 'E-Mails ändern und bestätigen, Rollen ändern, Passwörter setzen, Faktoren entfernen',
  'users:delete': 'Nutzer löschen',
  'users:impersonate': 'Als ein Nutzer handeln',
  'users:import': 'Nutzer importieren, mit Hashes und Rollen',
  'users:export': 'Alle Nutzer exportieren; auf Wunsch mit Passwort-Hashes, zweiten Faktoren und Passkeys',
  'events:read': 'Das Protokoll lesen',
  'keys:write': 'Admin-Schlüssel auflisten, erzeugen und widerrufen',
  'tokens:introspect': 'Fragen, ob ein Zugriffstoken gültig ist',
  'metrics:read': 'Metriken lesen',
  'status:read': 'Den Zustand des Dienstes lesen',
  'mails:test': 'Mails mit Beispielen senden, um zu sehen, wie Mails ankommen',
  'settings:read': 'Die Einstellungen lesen, ohne Geheimnisse',
}

/** Errors of the core that only administrators see, or that mean something else to them than to users. */
export const CORE_ERRORS: Partial<Readonly<Record<ErrorName, Text>>> = {
  badUrl: word('The address is not valid.', 'Die Adresse ist nicht gültig.'),
  malformedForm: word('The form is not valid.', 'Das Formular ist nicht gültig.'),
  malformedJson: word('This is not valid JSON.', 'Das ist kein gültiges JSON.'),
  bodyRequired: word('This must be an object in JSON.', 'Das muss ein Objekt in JSON sein.'),
  notUtf8: word('This is not valid UTF-8.', 'Das ist kein gültiges UTF-8.'),
  duplicateKey: word('A name is there twice.', 'Ein Name kommt zweimal vor.'),
  dangerousKey: word('A name is not allowed.', 'Ein Name ist nicht erlaubt.'),
  emailIsCurrent: word('This is the present e-mail.', 'Das ist die jetzige E-Mail.'),
  expiresInPast: word('This must be in the future.', 'Das muss in der Zukunft liegen.'),
  mailsOff: word('MAIL_URL is off: no mails are sent.', 'MAIL_URL ist off: Es werden keine Mails gesendet.'),
  addressInvalid: word('This is not an IP address.', 'Das ist keine IP-Adresse.'),
  badCursor: word(
    'This page of the list does not exist any more. Begin with the first one.',
    'Diese Seite der Liste gibt es nicht mehr. Beginnen Sie mit der ersten.',
  ),
  adminKeyRequired: word('The admin key is not valid any more.', 'Der Admin-Schlüssel gilt nicht mehr.'),
  reauthenticationRequired: word(
    'This needs a proof of who you are: enter a code, or sign in again.',
    'Dafür ist ein Nachweis nötig, wer Sie sind: Geben Sie einen Code ein, oder melden Sie sich noch einmal an.',
  ),
  routeNotFound: word('There is no such page.', 'Diese Seite gibt es nicht.'),
  methodNotAllowed: word('This page cannot do this.', 'Diese Seite kann das nicht.'),
  userNotFound: word('There is no such user.', 'Diesen Nutzer gibt es nicht.'),
  sessionNotFound: word('This session has ended already.', 'Diese Sitzung ist schon beendet.'),
  passwordRequired: word('The password is needed.', 'Das Passwort ist nötig.'),
  lastSignInMethod: word(
    'This is the last way to sign in to the account.',
    'Das ist der letzte Weg, sich bei dem Konto anzumelden.',
  ),
  versionChanged: word(
    'The user was changed in the meantime. Open the page again.',
    'Der Nutzer wurde inzwischen geändert. Öffnen Sie die Seite noch einmal.',
  ),
  formOrJsonRequired: word('The form is not valid.', 'Das Formular ist nicht gültig.'),
  rootKeyRequired: word('Only the key ADMIN_KEY may do this.', 'Das darf nur der Schlüssel ADMIN_KEY.'),
  tooManyEventStreams: word(
    'Too many pages follow the log. Close one.',
    'Zu viele Seiten folgen dem Protokoll. Schließen Sie eine.',
  ),
}
