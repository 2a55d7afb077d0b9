/** The schemas of identities in imports and exports. */
import { type TString, Type } from '@sinclair/typebox'
import { KnownEmail, Strict } from '#http/validation/schemas'
import { MAX_IDENTITIES } from './stored-identities.ts'

const Timestamp = Type.String({ format: 'date-time' })

const orNull = (schema: TString) =>
  Type.Optional(Type.Unsafe<string | null>({ ...schema, type: ['string', 'null'] }))

export default {
  identities: Type.Optional(
    Type.Array(
      Strict({
        issuer: Type.String({ minLength: 1, maxLength: 512, examples: ['https://accounts.google.com'] }),
        subject: Type.String({ minLength: 1, maxLength: 255, examples: ['248289761001'] }),
        provider: Type.String({ minLength: 1, maxLength: 32, examples: ['google'] }),
        email: orNull(KnownEmail),
        linkedAt: Type.Optional(Timestamp),
        lastUsedAt: orNull(Timestamp),
      }),
      {
        maxItems: MAX_IDENTITIES,
        description: 'They sign in where a provider with the issuer is configured',
      },
    ),
  ),
}
