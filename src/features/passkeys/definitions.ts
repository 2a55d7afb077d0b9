/** The errors, events and mails of passkeys, which their use cases need. `passkeys.ts` declares the feature. */
import { Type } from '@sinclair/typebox'
import { type DepsOf, defineErrors } from '#feature/declaration'
import { changeMail } from '#feature/mails'
import { storedPasskeys } from './stored-passkeys.ts'

const Details = Type.Object({ passkey: Type.String({ description: 'The id of the passkey' }) })

const MAILS = {
  passkeyAdded: changeMail(
    {
      subject: 'A passkey has been added to your account',
      text: 'A new passkey signs in to your account at {product}, without the password.',
      ifNotYou: 'remove the passkey and choose a new password now',
    },
    {
      subject: 'Ihr Konto hat einen neuen Passkey',
      text: 'Ein neuer Passkey meldet ohne Passwort bei Ihrem Konto bei {product} an.',
      ifNotYou: 'entfernen Sie den Passkey und wählen Sie jetzt ein neues Passwort',
    },
  ),
  passkeyRemoved: changeMail(
    {
      subject: 'A passkey has been removed from your account',
      text: 'A passkey of your account at {product} has been removed. It does not sign in any more.',
    },
    {
      subject: 'Ein Passkey Ihres Kontos wurde entfernt',
      text: 'Ein Passkey Ihres Kontos bei {product} wurde entfernt. Mit ihm kann man sich nicht mehr anmelden.',
    },
  ),
}

export const ERRORS = defineErrors({
  wrongNewPasskey: { status: 400, field: 'credential', message: 'could not be verified: begin again' },
  wrongPasskey: { status: 401, field: 'credential', message: 'could not be verified' },
  passkeysUnavailable: {
    status: 403,
    message: 'This service has an IP address in place of a host name, so passkeys cannot be used',
  },
  passkeyNotFound: { status: 404, message: 'There is no such passkey' },
  passkeyExists: { status: 409, field: 'credential', message: 'is already a passkey' },
  tooManyPasskeys: { status: 409, message: 'You have 20 passkeys: remove one first' },
})

export const definitions = {
  ...storedPasskeys,
  events: { 'passkey.added': Details, 'passkey.removed': Details, 'passkey.counter-regressed': Details },
  mails: MAILS,
  errors: ERRORS,
}

export type PasskeysDeps = DepsOf<typeof definitions>
