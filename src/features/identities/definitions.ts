/** The errors, events, mails and settings of identities, which their use cases need. `identities.ts` declares the feature. */
import { Type } from '@sinclair/typebox'
import { allowedHosts } from '#base/http-client/http-client'
import { type DepsOf, defineErrors } from '#feature/declaration'
import { changeMail } from '#feature/mails'
import { providersReader } from './provider-settings.ts'
import { storedIdentities } from './stored-identities.ts'

const IdentityId = Type.String({ description: 'The id of the identity' })

type ProviderName = { readonly provider: string }

const MAILS = {
  identityLinked: {
    ...changeMail(
      {
        subject: 'Another provider signs in to your account',
        text: 'An account of {provider} signs in to your account at {product} now.',
        ifNotYou: 'unlink it and choose a new password now',
      },
      {
        subject: 'Ein anderer Anbieter meldet bei Ihrem Konto an',
        text: 'Ein Konto von {provider} meldet jetzt bei Ihrem Konto bei {product} an.',
        ifNotYou: 'heben Sie die Verbindung auf und wählen Sie jetzt ein neues Passwort',
      },
    ),
    places: ({ provider }: ProviderName) => ({ provider }),
    example: { provider: 'Example' },
  },
  identityRemoved: {
    ...changeMail(
      {
        subject: 'A provider does not sign in to your account any more',
        text: 'An account of {provider} was unlinked from your account at {product}. It does not sign in any more.',
      },
      {
        subject: 'Ein Anbieter meldet nicht mehr bei Ihrem Konto an',
        text: 'Die Verbindung eines Kontos von {provider} mit Ihrem Konto bei {product} wurde aufgehoben. Mit ihm kann man sich nicht mehr anmelden.',
      },
    ),
    places: ({ provider }: ProviderName) => ({ provider }),
    example: { provider: 'Example' },
  },
}

export const ERRORS = defineErrors({
  wrongProviderFlow: {
    status: 400,
    message: 'This sign-in is not valid any more, or began in another browser: begin again',
  },
  providerRejected: { status: 401, message: 'The provider has not confirmed who you are: begin again' },
  providerEmailUnusable: {
    status: 403,
    message: 'The provider does not confirm an e-mail for you: sign up here first, then link the provider',
  },
  providerSignUpOff: {
    status: 403,
    message: 'Nobody can sign up with this provider: sign up here first, then link it',
  },
  providerNotFound: { status: 404, message: 'There is no such provider' },
  identityNotFound: { status: 404, message: 'There is no such identity' },
  providerEmailTaken: {
    status: 409,
    message: 'There is an account with this e-mail: sign in to it, then link the provider',
  },
  identityTaken: { status: 409, message: 'This account of the provider is linked to an account already' },
  tooManyIdentities: { status: 409, message: 'You have 20 identities: unlink one first' },
  providerUnavailable: {
    status: 503,
    message: 'The provider is not available: try again, or sign in another way',
    retryAfter: 5,
  },
})

export const definitions = {
  ...storedIdentities,
  events: {
    'identity.linked': Type.Object({
      identity: IdentityId,
      provider: Type.String({ description: 'The id of the provider' }),
    }),
    'identity.removed': Type.Object({ identity: IdentityId }),
  },
  mails: MAILS,
  errors: ERRORS,
  settings: {
    OIDC_PROVIDERS: {
      read: providersReader,
      default: '[]',
      description: 'providers with whose accounts users sign in: a JSON list, or the path of a file with one',
    },
    OIDC_ALLOWED_HOSTS: {
      read: allowedHosts,
      default: '',
      shown: true,
      description:
        'hosts of providers that may have private addresses and plain HTTP, such as localhost:4000',
    },
  },
} as const

export type IdentitiesDeps = DepsOf<typeof definitions>
