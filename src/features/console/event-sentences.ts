/** What events of the core say, and those of built-in features that have no pages in the console. */
import type { EventSentence } from '#http/pages/feature-pages'

const added = (en: string, de: string): EventSentence => ({
  own: { en: `{actor} added ${en}`, de: `{actor} hat ${de} hinzugefügt` },
  of: { en: `{actor} added ${en} of {user}`, de: `{actor} hat ${de} von {user} hinzugefügt` },
  icon: 'shield',
})

const removed = (en: string, de: string): EventSentence => ({
  own: { en: `{actor} removed ${en}`, de: `{actor} hat ${de} entfernt` },
  of: { en: `{actor} removed ${en} of {user}`, de: `{actor} hat ${de} von {user} entfernt` },
  icon: 'shield',
  isBad: true,
})

export const EVENT_SENTENCES: Readonly<Record<string, EventSentence>> = {
  'user.created': {
    own: { en: '{actor} created an account', de: '{actor} hat ein Konto erzeugt' },
    of: { en: '{actor} created the account of {user}', de: '{actor} hat das Konto von {user} erzeugt' },
    icon: 'user',
  },
  'user.sign-up-requested': {
    own: { en: '{actor} began to sign up', de: '{actor} hat eine Registrierung begonnen' },
    icon: 'user',
  },
  'user.signed-up': {
    own: { en: '{actor} created an account', de: '{actor} hat ein Konto erzeugt' },
    of: { en: '{user} created an account', de: '{user} hat ein Konto erzeugt' },
    icon: 'user',
  },
  'user.sign-up-repeated': {
    own: { en: '{actor} signed up again', de: '{actor} hat sich noch einmal registriert' },
    of: {
      en: 'Somebody signed up with the e-mail of {user}',
      de: 'Jemand hat sich mit der E-Mail von {user} registriert',
    },
    icon: 'user',
  },
  'user.signed-in': {
    own: { en: '{actor} signed in', de: '{actor} hat sich angemeldet' },
    of: { en: '{user} signed in', de: '{user} hat sich angemeldet' },
    icon: 'check',
    isGood: true,
  },
  'user.impersonated': {
    own: { en: '{actor} acts as a user', de: '{actor} handelt als ein Nutzer' },
    of: { en: '{actor} acts as {user}', de: '{actor} handelt als {user}' },
    icon: 'mask',
  },
  'user.changed': {
    own: { en: '{actor} changed the profile', de: '{actor} hat das Profil geändert' },
    of: { en: '{actor} changed the profile of {user}', de: '{actor} hat das Profil von {user} geändert' },
    icon: 'edit',
  },
  'user.disabled': {
    own: { en: '{actor} disabled the account', de: '{actor} hat das Konto gesperrt' },
    of: { en: '{actor} disabled {user}', de: '{actor} hat {user} gesperrt' },
    icon: 'block',
    isBad: true,
  },
  'user.enabled': {
    own: { en: '{actor} enabled the account', de: '{actor} hat das Konto freigegeben' },
    of: { en: '{actor} enabled {user}', de: '{actor} hat {user} freigegeben' },
    icon: 'check',
  },
  'user.deleted': {
    own: { en: '{actor} deleted the account', de: '{actor} hat das Konto gelöscht' },
    of: { en: '{actor} deleted the account of {user}', de: '{actor} hat das Konto von {user} gelöscht' },
    icon: 'remove',
    isBad: true,
  },
  'session.sign-in-throttled': {
    own: { en: 'Sign-ins are slowed down', de: 'Anmeldungen werden gebremst' },
    of: {
      en: 'Sign-ins as {user} are slowed down after wrong attempts',
      de: 'Anmeldungen als {user} werden nach falschen Versuchen gebremst',
    },
    icon: 'warning',
    isBad: true,
  },
  'session.reauthenticated': {
    own: { en: '{actor} proved the identity again', de: '{actor} hat die Identität noch einmal bestätigt' },
    icon: 'check',
  },
  'session.ended': {
    own: { en: '{actor} ended a session', de: '{actor} hat eine Sitzung beendet' },
    of: { en: '{actor} ended a session of {user}', de: '{actor} hat eine Sitzung von {user} beendet' },
    icon: 'signOut',
  },
  'sessions.ended': {
    own: { en: '{actor} ended sessions', de: '{actor} hat Sitzungen beendet' },
    of: { en: '{actor} ended the sessions of {user}', de: '{actor} hat die Sitzungen von {user} beendet' },
    icon: 'signOut',
  },
  'password.changed': {
    own: { en: '{actor} changed the password', de: '{actor} hat das Passwort geändert' },
    of: { en: '{actor} changed the password of {user}', de: '{actor} hat das Passwort von {user} geändert' },
    icon: 'key',
  },
  'password.reset-requested': {
    own: { en: '{actor} asked for a new password', de: '{actor} hat ein neues Passwort angefordert' },
    of: {
      en: '{actor} sent {user} a link for a new password',
      de: '{actor} hat {user} einen Link für ein neues Passwort geschickt',
    },
    icon: 'mail',
  },
  'password.reset': {
    own: { en: '{actor} chose a new password', de: '{actor} hat ein neues Passwort gewählt' },
    of: { en: '{user} chose a new password', de: '{user} hat ein neues Passwort gewählt' },
    icon: 'key',
  },
  'password.removed': removed('the password', 'das Passwort'),
  'email.verification-requested': {
    own: { en: '{actor} asked for a confirmation mail', de: '{actor} hat eine Bestätigungsmail angefordert' },
    of: {
      en: '{actor} sent {user} a confirmation mail',
      de: '{actor} hat {user} eine Bestätigungsmail geschickt',
    },
    icon: 'mail',
  },
  'email.verified': {
    own: { en: '{actor} confirmed the e-mail', de: '{actor} hat die E-Mail bestätigt' },
    of: { en: 'The e-mail of {user} is confirmed', de: 'Die E-Mail von {user} ist bestätigt' },
    icon: 'mail',
    isGood: true,
  },
  'email.change-requested': {
    own: { en: '{actor} began to change the e-mail', de: '{actor} hat begonnen, die E-Mail zu ändern' },
    of: {
      en: '{actor} began to change the e-mail of {user}',
      de: '{actor} hat begonnen, die E-Mail von {user} zu ändern',
    },
    icon: 'mail',
  },
  'email.changed': {
    own: { en: '{actor} changed the e-mail', de: '{actor} hat die E-Mail geändert' },
    of: { en: 'The e-mail of {user} is changed', de: 'Die E-Mail von {user} ist geändert' },
    icon: 'mail',
  },
  'email.change-rejected': {
    own: {
      en: '{actor} stopped a change of the e-mail',
      de: '{actor} hat eine Änderung der E-Mail verhindert',
    },
    of: {
      en: 'A change of the e-mail of {user} was stopped',
      de: 'Eine Änderung der E-Mail von {user} wurde verhindert',
    },
    icon: 'mail',
    isBad: true,
  },
  'factors.removed': removed('all factors', 'alle Faktoren'),
  'console.signed-in': {
    own: { en: '{actor} signed in to the console', de: '{actor} hat sich an der Konsole angemeldet' },
    icon: 'check',
    isGood: true,
  },
  'email-code.requested': {
    own: { en: '{actor} asked for a code by mail', de: '{actor} hat einen Code per Mail angefordert' },
    of: { en: 'A code was sent to {user}', de: 'Ein Code wurde an {user} geschickt' },
    icon: 'mail',
  },
  'magic-link.requested': {
    own: { en: '{actor} asked for a sign-in link', de: '{actor} hat einen Anmeldelink angefordert' },
    of: { en: 'A sign-in link was sent to {user}', de: 'Ein Anmeldelink wurde an {user} geschickt' },
    icon: 'mail',
  },
  'passkey.added': added('a passkey', 'einen Passkey'),
  'passkey.removed': removed('a passkey', 'einen Passkey'),
  'passkey.counter-regressed': {
    own: { en: 'A passkey may be a copy', de: 'Ein Passkey ist vielleicht eine Kopie' },
    of: { en: 'A passkey of {user} may be a copy', de: 'Ein Passkey von {user} ist vielleicht eine Kopie' },
    icon: 'warning',
    isBad: true,
  },
  'totp.added': added('an authenticator app', 'eine Authenticator-App'),
  'totp.removed': removed('the authenticator app', 'die Authenticator-App'),
  'recovery-codes.replaced': {
    own: { en: '{actor} made new recovery codes', de: '{actor} hat neue Wiederherstellungscodes erzeugt' },
    icon: 'shield',
  },
  'recovery-code.used': {
    own: { en: '{actor} used a recovery code', de: '{actor} hat einen Wiederherstellungscode benutzt' },
    of: { en: '{user} used a recovery code', de: '{user} hat einen Wiederherstellungscode benutzt' },
    icon: 'shield',
  },
}
