/** What the use cases of authenticator apps declare. `totp.ts` has the whole declaration. */
import { Type } from '@sinclair/typebox'
import type { Mails } from '../accounts/mails.ts'
import { type DepsOf, defineErrors } from '../feature.ts'
import { storedTotp } from './stored-totp.ts'

const NoDetails = Type.Object({})

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

export const parts = {
  ...storedTotp,
  events: {
    'totp.added': NoDetails,
    'totp.removed': NoDetails,
    'recovery-codes.replaced': NoDetails,
    'recovery-code.used': NoDetails,
  },
  errors: ERRORS,
}

export type TotpDeps = Omit<DepsOf<typeof parts>, 'mails'> & { readonly mails: Mails }
