/** TypeBox schemas of passkeys in responses. */
import { Type } from '@sinclair/typebox'
import { Id, NullableText, NullableTimestamp, Texts, Timestamp, withExample } from '#routes/schemas'
import type { CreationOptions, RequestOptions } from '../web-authn.ts'

export const Passkey = Type.Object(
  {
    id: Id,
    name: withExample(NullableText, 'Work laptop'),
    transports: Texts('internal'),
    backedUp: Type.Boolean({ description: 'Whether it is synchronised among devices, as of its last use' }),
    createdAt: Timestamp,
    lastUsedAt: NullableTimestamp,
  },
  { title: 'Passkey' },
)

const passkeyChallenge = Type.String({
  description: 'Works once, for five minutes',
  examples: ['Zr3kV0dYx1mJq8c5W2oTnB7uHs4eLg9iPfA6yXwKtDE'],
})
const passkeyTimeout = Type.Integer({ description: 'Milliseconds', examples: [300_000] })
const UserVerification = Type.Literal('required')

const CredentialDescriptor = Type.Object({
  id: Type.String({ examples: ['rH4y1vZx3ZkQb0nTq2m8WQ'] }),
  type: Type.Literal('public-key'),
  transports: Type.Optional(Type.Array(Type.String(), { examples: [['internal', 'hybrid']] })),
})

/** Options for `PublicKeyCredential.parseCreationOptionsFromJSON` (WebAuthn §5.1.9). */
export const PasskeyCreationOptions = Type.Unsafe<CreationOptions>(
  Type.Object(
    {
      challenge: passkeyChallenge,
      rp: Type.Object({
        id: Type.String({ examples: ['example.com'] }),
        name: Type.String({ examples: ['Example'] }),
      }),
      user: Type.Object({
        id: Type.String({ examples: ['AZNrfkpcfT6fECs8TV5vcA'] }),
        name: Type.String({ examples: ['ann@example.com'] }),
        displayName: Type.String({ examples: ['Ann Lee'] }),
      }),
      pubKeyCredParams: Type.Array(Type.Object({ type: Type.Literal('public-key'), alg: Type.Integer() })),
      timeout: passkeyTimeout,
      excludeCredentials: Type.Array(CredentialDescriptor),
      authenticatorSelection: Type.Object({
        residentKey: Type.Literal('required'),
        requireResidentKey: Type.Boolean({ examples: [true] }),
        userVerification: UserVerification,
      }),
      attestation: Type.Literal('none'),
      extensions: Type.Object({ credProps: Type.Boolean({ examples: [true] }) }),
    },
    { title: 'PasskeyCreationOptions' },
  ),
)

/** Options for `PublicKeyCredential.parseRequestOptionsFromJSON` (WebAuthn §5.1.10). */
export const PasskeyRequestOptions = Type.Unsafe<RequestOptions>(
  Type.Object(
    {
      challenge: passkeyChallenge,
      rpId: Type.String({ examples: ['example.com'] }),
      timeout: passkeyTimeout,
      userVerification: UserVerification,
    },
    { title: 'PasskeyRequestOptions' },
  ),
)

export const PasskeyList = Type.Object({ results: Type.Array(Passkey) }, { title: 'PasskeyList' })
