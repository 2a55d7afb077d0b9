/**
 * Schemas of passkeys in requests, and in imports and exports. In requests they are what `PublicKeyCredential.toJSON()` returns. Browsers and password managers add members, so unknown
 * ones are allowed, and ignored.
 */
import { type TProperties, Type } from '@sinclair/typebox'
import { BASE64URL_PATTERN } from '#http/validation/formats'
import { Name, Strict, withExample } from '#http/validation/schemas'
import { MAX_PASSKEYS, MAX_PUBLIC_KEY } from './stored-passkeys.ts'

const Open = <T extends TProperties>(properties: T, options = {}) =>
  Type.Object(properties, { additionalProperties: true, ...options })

const Bytes = (maxLength: number, description: string, example: string) =>
  Type.String({
    minLength: 1,
    maxLength,
    pattern: BASE64URL_PATTERN,
    description: `${description}, in base64url`,
    examples: [example],
  })

/** Characters of 1,023 bytes (WebAuthn §4). */
const MAX_CREDENTIAL_ID = 1_364

const CREDENTIAL_ID = 'rH4y1vZx3ZkQb0nTq2m8WQ'

const CredentialId = Bytes(MAX_CREDENTIAL_ID, 'The id of the credential', CREDENTIAL_ID)

const Transports = Type.Array(Type.String({ pattern: '^[a-z0-9-]{1,32}$', examples: ['internal'] }), {
  maxItems: 16,
  examples: [['internal', 'hybrid']],
})

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

/** What `navigator.credentials.create` returns. */
export const NewCredential = Open(
  {
    ...credentialProperties,
    response: Open({
      clientDataJSON: ClientData,
      attestationObject: Bytes(8_192, 'The public key', 'o2NmbXRkbm9uZWdhdHRTdG10oGhhdXRoRGF0YUA'),
      transports: Type.Optional(Transports),
    }),
  },
  { title: 'NewPasskeyCredential' },
)

/** What `navigator.credentials.get` returns. */
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
      signature: Bytes(4_096, 'The signature', 'MEUCIQCjT8q0pW3yJ0Yf9g'),
      userHandle: Type.Optional(
        Type.Unsafe<string | null>({
          type: ['string', 'null'],
          maxLength: 88,
          pattern: BASE64URL_PATTERN,
          description: 'The id of the user, in base64url',
          examples: ['AZNrfkpcfT6fECs8TV5vcA'],
        }),
      ),
    }),
  },
  { title: 'PasskeyCredential' },
)

/** What another service needs of a passkey, as properties of a strict object. */
const portableProperties = {
  id: CredentialId,
  publicKey: Bytes(
    MAX_PUBLIC_KEY,
    'For EdDSA, ES256 or RS256: COSE',
    'pQECAyYgASFYIHnd7rfbJhJ7GGe6fY_SWpzvYn24Y7XIyj5KWwfnRSv4Ilgg_pyK42KMidd90rmQ9F-kmR8V8mVpKwkY2U6yrU3IDu8',
  ),
  counter: Type.Integer({
    minimum: 0,
    maximum: 0xffff_ffff,
    description: 'Counts signatures; 0 for passkeys that do not count',
    examples: [0],
  }),
  transports: Type.Optional(Transports),
  backedUp: Type.Optional(
    Type.Boolean({ description: 'Whether it is synchronised among devices', examples: [true] }),
  ),
}

const Timestamp = Type.String({ format: 'date-time' })

/** The `credentials` of a user in imports and exports. */
export default {
  passkeys: Type.Optional(
    Type.Array(
      Strict({
        ...portableProperties,
        name: Type.Optional(withExample(Name, 'Work laptop')),
        createdAt: Type.Optional(Timestamp),
        lastUsedAt: Type.Optional(
          Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'date-time' }),
        ),
      }),
      {
        maxItems: MAX_PASSKEYS,
        description: 'They work at a service with the same RP id, for a user with the same id',
      },
    ),
  ),
}
