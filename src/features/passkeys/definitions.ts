/** The errors, events and mails of passkeys, which their use cases need. `passkeys.ts` declares the feature. */
import { Type } from '@sinclair/typebox'
import { type DepsOf, defineErrors, type MailSite } from '#feature/declaration'
import { storedPasskeys } from './stored-passkeys.ts'

const Details = Type.Object({ passkey: Type.String({ description: 'The id of the passkey' }) })

const notYouInGerman = (site: MailSite) => ({
  link: site.accountUrl,
  label: 'Wenn Sie es nicht waren, wählen Sie jetzt ein neues Passwort',
})

const MAILS = {
  passkeyAdded: {
    subject: 'A passkey has been added to your account',
    isRateLimited: true,
    body: (site: MailSite) => [
      `A new passkey signs in to your account at ${site.name}, without the password.`,
      'If it was you, you need to do nothing.',
      { link: site.accountUrl, label: 'If it was not you, remove the passkey and choose a new password now' },
    ],
    de: {
      subject: 'Ihr Konto hat einen neuen Passkey',
      body: (site: MailSite) => [
        `Ein neuer Passkey meldet ohne Passwort bei Ihrem Konto bei ${site.name} an.`,
        'Wenn Sie es waren, müssen Sie nichts tun.',
        {
          link: site.accountUrl,
          label: 'Wenn Sie es nicht waren, entfernen Sie den Passkey und wählen Sie jetzt ein neues Passwort',
        },
      ],
    },
  },
  passkeyRemoved: {
    subject: 'A passkey has been removed from your account',
    isRateLimited: true,
    body: (site: MailSite) => [
      `A passkey of your account at ${site.name} has been removed. It does not sign in any more.`,
      'If it was you, you need to do nothing.',
      {
        link: site.accountUrl,
        label: 'If it was not you, choose a new password now',
      },
    ],
    de: {
      subject: 'Ein Passkey Ihres Kontos wurde entfernt',
      body: (site: MailSite) => [
        `Ein Passkey Ihres Kontos bei ${site.name} wurde entfernt. Mit ihm kann man sich nicht mehr anmelden.`,
        'Wenn Sie es waren, müssen Sie nichts tun.',
        notYouInGerman(site),
      ],
    },
  },
}

export const ERRORS = defineErrors({
  wrongNewPasskey: { status: 400, field: 'credential', message: 'could not be verified: begin again' },
  wrongPasskey: { status: 401, field: 'credential', message: 'could not be verified' },
  passkeysUnavailable: {
    status: 403,
    field: 'global',
    message: 'This service has an IP address in place of a host name, so passkeys cannot be used',
  },
  passkeyNotFound: { status: 404, field: 'global', message: 'There is no such passkey' },
  passkeyExists: { status: 409, field: 'credential', message: 'is already a passkey' },
  tooManyPasskeys: { status: 409, field: 'global', message: 'You have 20 passkeys: remove one first' },
})

export const definitions = {
  ...storedPasskeys,
  events: { 'passkey.added': Details, 'passkey.removed': Details, 'passkey.counter-regressed': Details },
  mails: MAILS,
  errors: ERRORS,
}

export type PasskeysDeps = DepsOf<typeof definitions>
