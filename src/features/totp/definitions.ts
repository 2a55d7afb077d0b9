/** The errors, events and mails of authenticator apps, which their use cases need. `totp.ts` declares the feature. */
import { Type } from '@sinclair/typebox'
import { type DepsOf, defineErrors, type MailSite } from '#feature/declaration'
import { storedTotp } from './stored-totp.ts'

const NoDetails = Type.Object({})

const notYou = ({ accountUrl }: MailSite) => ({
  link: accountUrl,
  label: 'If it was not you, choose a new password now',
})

const notYouInGerman = (site: MailSite) => ({
  link: site.accountUrl,
  label: 'Wenn Sie es nicht waren, wählen Sie jetzt ein neues Passwort',
})

const MAILS = {
  totpAdded: {
    subject: 'An authenticator app has been added to your account',
    isRateLimited: true,
    body: (site: MailSite) => [
      `Signing in to your account at ${site.name} with the password now needs a code from an authenticator app too.`,
      'If it was you, you need to do nothing. Keep the recovery codes in a safe place.',
      {
        link: site.accountUrl,
        label: 'If it was not you, remove the app now where you are signed in, and choose a new password',
      },
    ],
    de: {
      subject: 'Ihr Konto hat jetzt eine Authenticator-App',
      body: (site: MailSite) => [
        `Wer sich mit dem Passwort bei Ihrem Konto bei ${site.name} anmeldet, braucht jetzt auch einen Code aus einer Authenticator-App.`,
        'Wenn Sie es waren, müssen Sie nichts tun. Bewahren Sie die Wiederherstellungscodes sicher auf.',
        {
          link: site.accountUrl,
          label:
            'Wenn Sie es nicht waren, entfernen Sie die App jetzt dort, wo Sie angemeldet sind, und wählen Sie ein neues Passwort',
        },
      ],
    },
  },
  totpRemoved: {
    subject: 'The authenticator app has been removed from your account',
    isRateLimited: true,
    body: (site: MailSite) => [
      `Signing in to your account at ${site.name} needs no code any more. The recovery codes do not work any more.`,
      'If it was you, you need to do nothing.',
      notYou(site),
    ],
    de: {
      subject: 'Die Authenticator-App Ihres Kontos wurde entfernt',
      body: (site: MailSite) => [
        `Die Anmeldung bei Ihrem Konto bei ${site.name} braucht keinen Code mehr. Die Wiederherstellungscodes gelten nicht mehr.`,
        'Wenn Sie es waren, müssen Sie nichts tun.',
        notYouInGerman(site),
      ],
    },
  },
  recoveryCodesReplaced: {
    subject: 'Your account has new recovery codes',
    isRateLimited: true,
    body: (site: MailSite) => [
      `New recovery codes were made for your account at ${site.name}. The former ones do not work any more.`,
      'If it was you, you need to do nothing.',
      notYou(site),
    ],
    de: {
      subject: 'Ihr Konto hat neue Wiederherstellungscodes',
      body: (site: MailSite) => [
        `Für Ihr Konto bei ${site.name} wurden neue Wiederherstellungscodes erstellt. Die früheren gelten nicht mehr.`,
        'Wenn Sie es waren, müssen Sie nichts tun.',
        notYouInGerman(site),
      ],
    },
  },
  recoveryCodeUsed: {
    subject: 'A recovery code of your account has been used',
    isRateLimited: true,
    body: (site: MailSite, { left }: { readonly left: number }) => [
      `A recovery code of your account at ${site.name} has been used in place of a code from your authenticator app. Codes left: ${left}.`,
      'If it was you, you need to do nothing. Make new codes before they run out.',
      notYou(site),
    ],
    de: {
      subject: 'Ein Wiederherstellungscode Ihres Kontos wurde verwendet',
      body: (site: MailSite, { left }: { readonly left: number }) => [
        `Ein Wiederherstellungscode Ihres Kontos bei ${site.name} wurde statt eines Codes aus Ihrer Authenticator-App verwendet. Übrige Codes: ${left}.`,
        'Wenn Sie es waren, müssen Sie nichts tun. Erstellen Sie neue Codes, bevor sie ausgehen.',
        notYouInGerman(site),
      ],
    },
  },
  /** Once a day, when wrong codes are throttled. Codes are compared only after another proof, or in a session. */
  wrongCodes: {
    subject: 'Somebody has entered wrong codes for your account',
    isRateLimited: true,
    body: (site: MailSite) => [
      `Somebody has entered several wrong codes for your account at ${site.name}. They know your password, can read your mails, or use a device on which you are signed in.`,
      'If it was you, you need to do nothing.',
      notYou(site),
    ],
    de: {
      subject: 'Jemand hat falsche Codes für Ihr Konto eingegeben',
      body: (site: MailSite) => [
        `Jemand hat mehrere falsche Codes für Ihr Konto bei ${site.name} eingegeben. Diese Person kennt Ihr Passwort, kann Ihre E-Mails lesen oder benutzt ein Gerät, auf dem Sie angemeldet sind.`,
        'Wenn Sie es waren, müssen Sie nichts tun.',
        notYouInGerman(site),
      ],
    },
  },
}

export const ERRORS = defineErrors({
  encryptionKeyRequired: {
    status: 403,
    field: 'global',
    message: 'This service has no ENCRYPTION_KEY, so authenticator apps cannot be added',
  },
  totpNotFound: { status: 404, field: 'global', message: 'Your account has no authenticator app' },
  totpExists: {
    status: 409,
    field: 'global',
    message: 'Your account has an authenticator app: remove it first',
  },
  totpNotBegun: {
    status: 409,
    field: 'global',
    message: 'Add an authenticator app first: POST /account/totp, an hour ago at most',
  },
  codesUnavailable: {
    status: 503,
    field: 'global',
    message: 'Codes of authenticator apps cannot be verified at present: use a recovery code',
  },
  secretsUnavailable: {
    status: 503,
    field: 'global',
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
