/** The errors, events and mails of authenticator apps, which their use cases need. `totp.ts` declares the feature. */
import { Type } from '@sinclair/typebox'
import { type DepsOf, defineErrors } from '#feature/declaration'
import { changeMail } from '#feature/mails'
import { storedTotp } from './stored-totp.ts'

const NoDetails = Type.Object({})

const MAILS = {
  totpAdded: changeMail(
    {
      subject: 'An authenticator app has been added to your account',
      text: 'Signing in to your account at {product} with the password now needs a code from an authenticator app too.',
      ifYou: 'Keep the recovery codes in a safe place.',
      ifNotYou: 'remove the app now where you are signed in, and choose a new password',
    },
    {
      subject: 'Ihr Konto hat jetzt eine Authenticator-App',
      text: 'Wer sich mit dem Passwort bei Ihrem Konto bei {product} anmeldet, braucht jetzt auch einen Code aus einer Authenticator-App.',
      ifYou: 'Bewahren Sie die Wiederherstellungscodes sicher auf.',
      ifNotYou: 'entfernen Sie die App jetzt dort, wo Sie angemeldet sind, und wählen Sie ein neues Passwort',
    },
  ),
  totpRemoved: changeMail(
    {
      subject: 'The authenticator app has been removed from your account',
      text: 'Signing in to your account at {product} needs no code any more. The recovery codes do not work any more.',
    },
    {
      subject: 'Die Authenticator-App Ihres Kontos wurde entfernt',
      text: 'Die Anmeldung bei Ihrem Konto bei {product} braucht keinen Code mehr. Die Wiederherstellungscodes gelten nicht mehr.',
    },
  ),
  recoveryCodesReplaced: changeMail(
    {
      subject: 'Your account has new recovery codes',
      text: 'New recovery codes were made for your account at {product}. The former ones do not work any more.',
    },
    {
      subject: 'Ihr Konto hat neue Wiederherstellungscodes',
      text: 'Für Ihr Konto bei {product} wurden neue Wiederherstellungscodes erstellt. Die früheren gelten nicht mehr.',
    },
  ),
  recoveryCodeUsed: {
    ...changeMail(
      {
        subject: 'A recovery code of your account has been used',
        text: 'A recovery code of your account at {product} has been used in place of a code from your authenticator app. Codes left: {left}.',
        ifYou: 'Make new codes before they run out.',
      },
      {
        subject: 'Ein Wiederherstellungscode Ihres Kontos wurde verwendet',
        text: 'Ein Wiederherstellungscode Ihres Kontos bei {product} wurde statt eines Codes aus Ihrer Authenticator-App verwendet. Übrige Codes: {left}.',
        ifYou: 'Erstellen Sie neue Codes, bevor sie ausgehen.',
      },
    ),
    places: ({ left }: { readonly left: number }) => ({ left }),
    example: { left: 9 },
  },
  /** Once a day, when wrong codes are throttled. Codes are compared only after another proof, or in a session. */
  wrongCodes: changeMail(
    {
      subject: 'Somebody has entered wrong codes for your account',
      text: 'Somebody has entered several wrong codes for your account at {product}. They know your password, can read your mails, or use a device on which you are signed in.',
    },
    {
      subject: 'Jemand hat falsche Codes für Ihr Konto eingegeben',
      text: 'Jemand hat mehrere falsche Codes für Ihr Konto bei {product} eingegeben. Diese Person kennt Ihr Passwort, kann Ihre E-Mails lesen oder benutzt ein Gerät, auf dem Sie angemeldet sind.',
    },
  ),
}

export const ERRORS = defineErrors({
  encryptionKeyRequired: {
    status: 403,
    message: 'This service has no ENCRYPTION_KEY, so authenticator apps cannot be added',
  },
  totpNotFound: { status: 404, message: 'Your account has no authenticator app' },
  totpExists: { status: 409, message: 'Your account has an authenticator app: remove it first' },
  totpNotBegun: {
    status: 409,
    message: 'Add an authenticator app first: POST /account/totp, an hour ago at most',
  },
  codesUnavailable: {
    status: 503,
    message: 'Codes of authenticator apps cannot be verified at present: use a recovery code',
  },
  secretsUnavailable: {
    status: 503,
    message:
      'Secrets of authenticator apps cannot be decrypted: configure the ENCRYPTION_KEY that encrypted them',
  },
})

export const definitions = {
  ...storedTotp,
  events: {
    'totp.added': NoDetails,
    'totp.removed': NoDetails,
    'recovery-codes.replaced': NoDetails,
    'recovery-code.used': NoDetails,
  },
  mails: MAILS,
  errors: ERRORS,
}

export type TotpDeps = DepsOf<typeof definitions>
