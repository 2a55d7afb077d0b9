/** What the use cases of passkeys declare. `passkeys.ts` has the whole declaration. */
import { Type } from '@sinclair/typebox'
import type { Mails } from '../accounts/mails.ts'
import { type DepsOf, defineErrors } from '../feature.ts'
import { storedPasskeys } from './stored-passkeys.ts'

const Details = Type.Object({ passkey: Type.String({ description: 'The id of the passkey' }) })

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

export const parts = {
  ...storedPasskeys,
  events: { 'passkey.added': Details, 'passkey.removed': Details, 'passkey.counter-regressed': Details },
  errors: ERRORS,
}

export type PasskeysDeps = Omit<DepsOf<typeof parts>, 'mails'> & { readonly mails: Mails }
