/** What is taken in more than one place, as TypeBox schemas. */
import { type TProperties, Type } from '@sinclair/typebox'
import { PASSWORD_MAX_LENGTH } from '../passwords/policy.ts'
import { EMAIL_MAX_LENGTH } from '../users/user.ts'

/** Strict: a property that is not declared is refused. */
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

/** An e-mail that an account is looked for by: also one that was taken when the rules were others. */
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

/** For the pages at /docs: long and uncommon enough for any configuration. */
export const EXAMPLE_PASSWORD = 'four hens crossed the moat'

/** A password that is chosen; NUL is a character like any other. */
export const NewPassword = (minLength: number) =>
  Type.String({
    minLength,
    maxLength: PASSWORD_MAX_LENGTH,
    chosenPassword: true,
    text: 'any',
    format: 'password',
    examples: [EXAMPLE_PASSWORD],
  })

/** What another service has made of a password. */
export const PasswordHash = Type.String({ passwordHash: true })

/** An account that somebody else opens for its owner. */
export const NewAccount = (passwordMinLength: number) =>
  Strict({
    email: Email,
    password: Type.Optional(NewPassword(passwordMinLength)),
    passwordHash: Type.Optional(PasswordHash),
    firstName: Type.Optional(Name),
    lastName: Type.Optional(Name),
    emailVerified: Type.Optional(Type.Boolean()),
  })

const Moment = Type.String({ format: 'date-time' })

/** A line of what is imported. */
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
    id: Type.Optional(Type.String({ normalize: 'lower', format: 'uuid' })),
    createdAt: Type.Optional(Moment),
    updatedAt: Type.Optional(Moment),
    lastRequestAt: Type.Optional(
      Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'date-time' }),
    ),
  },
  { title: 'ImportedUser' },
)
