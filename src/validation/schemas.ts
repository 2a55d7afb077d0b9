/** TypeBox schemas of input that several routes or commands accept. */
import { type TProperties, Type } from '@sinclair/typebox'
import { PASSWORD_MAX_LENGTH } from '../passwords/policy.ts'
import { EMAIL_MAX_LENGTH } from '../users/user.ts'

/** An object schema that rejects undeclared properties. */
export const Strict = <T extends TProperties>(properties: T, options = {}) =>
  Type.Object(properties, { additionalProperties: false, ...options })

const EMAIL = {
  normalize: 'email',
  format: 'email',
  maxLength: EMAIL_MAX_LENGTH,
  examples: ['ann@example.com'],
}

/** An e-mail for an account. */
export const Email = Type.String({ ...EMAIL, emailAddress: 'new' })

/** An e-mail to find an account by. Existing accounts may have addresses that are not allowed for new ones. */
export const KnownEmail = Type.String({ ...EMAIL, emailAddress: 'known' })

/** Characters are Unicode code points; `null` clears the name. */
export const Name = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  normalize: 'trim',
  minLength: 1,
  maxLength: 128,
  personName: true,
  examples: ['Ann'],
})

/** The example at /docs: long and uncommon enough for every configuration. */
export const EXAMPLE_PASSWORD = 'four hens crossed the moat'

/** A new password. It may contain NUL, because only its hash is stored. */
export const NewPassword = (minLength: number) =>
  Type.String({
    minLength,
    maxLength: PASSWORD_MAX_LENGTH,
    chosenPassword: true,
    text: 'any',
    format: 'password',
    examples: [EXAMPLE_PASSWORD],
  })

/** A password hash of another service. */
export const PasswordHash = Type.String({ passwordHash: true })

/** An account that an administrator creates. */
export const NewAccount = (passwordMinLength: number) =>
  Strict({
    email: Email,
    password: Type.Optional(NewPassword(passwordMinLength)),
    passwordHash: Type.Optional(PasswordHash),
    firstName: Type.Optional(Name),
    lastName: Type.Optional(Name),
    emailVerified: Type.Optional(Type.Boolean()),
  })

/** An id in a request: UUIDs are case-insensitive (RFC 9562 §4). */
export const InputId = Type.String({ normalize: 'lower', format: 'uuid' })

const Timestamp = Type.String({ format: 'date-time' })

/** A line of an import. */
export const ImportedUser = Strict(
  {
    email: Email,
    passwordHash: Type.Optional(
      Type.String({ passwordHash: true, description: 'argon2 or scrypt in PHC form, or bcrypt' }),
    ),
    firstName: Type.Optional(Name),
    lastName: Type.Optional(Name),
    emailVerified: Type.Optional(Type.Boolean()),
    disabled: Type.Optional(Type.Boolean()),
    id: Type.Optional(InputId),
    createdAt: Type.Optional(Timestamp),
    updatedAt: Type.Optional(Timestamp),
    lastRequestAt: Type.Optional(
      Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'date-time' }),
    ),
  },
  { title: 'ImportedUser' },
)
