/** TypeBox schemas of providers and identities. */
import { Type } from '@sinclair/typebox'
import { Id, NullableText, NullableTimestamp, Strict, Timestamp, withExample } from '#routes/schemas'

export const ProviderId = Type.String({ minLength: 1, maxLength: 64, examples: ['google'] })

export const ProviderParams = Strict({ id: ProviderId })

/** The secret of a flow, which the client keeps until the callback. */
export const FlowSecret = Type.String({
  minLength: 1,
  maxLength: 64,
  description: 'Works for ten minutes',
  examples: ['Zr3kV0dYx1mJq8c5W2oTnB7uHs4eLg9iPfA6yXwKtDE'],
})

export const StartedFlow = Type.Object(
  {
    authorizationUrl: Type.String({
      format: 'uri',
      examples: ['https://accounts.google.com/o/oauth2/v2/auth?client_id=gatehouse'],
    }),
    flow: FlowSecret,
  },
  { title: 'StartedFlow' },
)

export const ProviderList = Type.Object(
  {
    results: Type.Array(
      Type.Object({ id: ProviderId, name: Type.String({ examples: ['Google'] }) }, { title: 'Provider' }),
    ),
  },
  { title: 'ProviderList' },
)

export const AdminProviderList = Type.Object(
  {
    results: Type.Array(
      Type.Object(
        {
          id: ProviderId,
          name: Type.String({ examples: ['Google'] }),
          type: Type.Unsafe<'oidc' | 'oauth2'>({ type: 'string', enum: ['oidc', 'oauth2'] }),
          issuer: Type.String({ examples: ['https://accounts.google.com'] }),
          scopes: Type.Array(Type.String(), { examples: [['openid', 'email', 'profile']] }),
          signUp: Type.Boolean({ description: 'Whether it may open accounts' }),
          redirectUri: Type.String({
            format: 'uri',
            description: 'Where the provider sends browsers back, to be entered there',
            examples: ['https://accounts.example.com/account/sign-in/providers/google/callback'],
          }),
        },
        { title: 'AdminProvider' },
      ),
    ),
  },
  { title: 'AdminProviderList' },
)

export const Identity = Type.Object(
  {
    id: Id,
    provider: Type.String({ description: 'The id of the provider', examples: ['google'] }),
    issuer: Type.String({ examples: ['https://accounts.google.com'] }),
    subject: Type.String({ description: 'The user at the provider', examples: ['248289761001'] }),
    email: withExample(NullableText, 'ann@example.com'),
    linkedAt: Timestamp,
    lastUsedAt: NullableTimestamp,
  },
  { title: 'Identity' },
)

export const IdentityList = Type.Object({ results: Type.Array(Identity) }, { title: 'IdentityList' })
