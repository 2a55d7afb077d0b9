/**
 * Schemas of passkeys in requests: what `PublicKeyCredential.toJSON()` returns. Browsers and password managers add members, so unknown
 * ones are allowed, and ignored.
 */
import { type TProperties, Type } from '@sinclair/typebox'

const Open = <T extends TProperties>(properties: T, options = {}) =>
  Type.Object(properties, { additionalProperties: true, ...options })

const Bytes = (maxLength: number, description: string, example: string) =>
  Type.String({
    minLength: 1,
    maxLength,
    pattern: '^[A-Za-z0-9_-]+$',
    description: `${description}, in base64url`,
    examples: [example],
  })

/** At most 1,023 bytes (WebAuthn §4). */
const CredentialId = Bytes(1_364, 'The id of the credential', 'rH4y1vZx3ZkQb0nTq2m8WQ')

const ClientData = Bytes(
  4_096,
  'What the browser has signed: the challenge and the origin',
  'eyJ0eXBlIjoid2ViYXV0aG4uZ2V0IiwiY2hhbGxlbmdlIjoiIn0',
)

const credentialProperties = {
  id: CredentialId,
  rawId: CredentialId,
  type: Type.Literal('public-key'),
}

/** Of `navigator.credentials.create`. */
export const NewCredential = Open(
  {
    ...credentialProperties,
    response: Open({
      clientDataJSON: ClientData,
      attestationObject: Bytes(8_192, 'The public key', 'o2NmbXRkbm9uZWdhdHRTdG10oGhhdXRoRGF0YUA'),
      transports: Type.Optional(
        Type.Array(Type.String({ pattern: '^[a-z0-9-]{1,32}$', examples: ['internal'] }), {
          maxItems: 16,
          examples: [['internal', 'hybrid']],
        }),
      ),
    }),
  },
  { title: 'NewPasskeyCredential' },
)

/** Of `navigator.credentials.get`. */
export const PresentedCredential = Open(
  {
    ...credentialProperties,
    response: Open({
      clientDataJSON: ClientData,
      authenticatorData: Bytes(
        4_096,
        'What the authenticator has signed',
        'SZYN5YgOjGh0NBcPZHZgW4_krrmihjLHmVzzuoMdl2MFAAAAAQ',
      ),
      signature: Bytes(4_096, 'The signature', 'MEUCIQCjT8q0pW3yJ0Yf9m'),
      userHandle: Type.Optional(
        Type.Unsafe<string | null>({
          type: ['string', 'null'],
          maxLength: 88,
          pattern: '^[A-Za-z0-9_-]*$',
          description: 'The id of the user, in base64url',
          examples: ['AZNrfkpcfT6fECs8TV5vcA'],
        }),
      ),
    }),
  },
  { title: 'PasskeyCredential' },
)
