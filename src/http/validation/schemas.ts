/** TypeBox schemas of input that several routes or commands accept, and of errors. */
import { type TOptional, type TProperties, type TSchema, type TUnsafe, Type } from '@sinclair/typebox'
import { type DeclaredError, ERRORS, type ErrorName, errorBody } from '#base/errors'
import type { ScopeDescriptions } from '#core/auth/scopes'
import { PASSWORD_MAX_LENGTH } from '#core/passwords/policy'
import { FACTORS, type Factor } from '#core/users/factors'
import { FIELD_NAMES, type FieldName, type FieldValues, USER_FIELDS } from '#core/users/fields'
import { ROLE_PATTERN } from '#core/users/roles'
import { EMAIL_MAX_LENGTH } from '#core/users/user'
import { describePattern } from './field-errors.ts'
import type { MetadataSchemas } from './metadata.ts'

/** An object schema that rejects undeclared properties. */
export const Strict = <T extends TProperties>(properties: T, options = {}) =>
  Type.Object(properties, { additionalProperties: false, ...options })

/** The schema with another example for the OpenAPI document. */
export const withExample = <Schema extends TSchema>(schema: Schema, example: unknown): Schema => ({
  ...schema,
  examples: [example],
})

/**
 * A text of a pattern: `PatternText('^[0-9]{4}$', 'must be four digits', { examples: ['4711'] })`.
 * @param message what the field's errors say of other texts. Without one, `must match pattern` would show people the expression.
 */
export const PatternText = (pattern: string, message: string, options = {}) => {
  describePattern(pattern, message)
  return Type.String({ pattern, ...options })
}

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
export const Name = Type.Unsafe<string | null>(USER_FIELDS.firstName.schema)

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

/** A password to compare, without the rules for new ones. */
export const PresentedPassword = Type.String({
  text: 'any',
  format: 'password',
  examples: [EXAMPLE_PASSWORD],
})

/** A code instead of the password or besides it. Examples leave it out, because only some users have an app. */
export const OptionalCode = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: 64,
    description: 'Six digits of an authenticator app, or a recovery code',
    examples: [],
  }),
)

/** What proves the identity of a user, as properties of a body. */
export const ProofProperties = {
  password: Type.Optional(
    Type.Intersect([PresentedPassword], {
      description:
        'Needed, or with an app a code, unless you signed in or re-authenticated within the last ten minutes',
    }),
  ),
  code: OptionalCode,
}

/** A password hash of another service. */
export const PasswordHash = Type.String({
  passwordHash: true,
  description: 'argon2 or scrypt in PHC form, or bcrypt',
  examples: ['$2b$10$6Y9U9C8qv8n7wN3Kx1nRweO6m1Jk0Yv0pJQ1yqkT3H0mVn9rVv3Wy'],
})

export const Role = Type.String({ pattern: ROLE_PATTERN, examples: ['editor'] })

/** The operator's schema of the metadata of each field. */
const metadataOf: Partial<Record<FieldName, keyof MetadataSchemas>> = {
  userMetadata: 'user',
  appMetadata: 'app',
}

/** Fields of a user in a request. Those that it leaves out stay, or are absent from a new user; `null` clears a text. */
export const fieldProperties = <Name extends FieldName>(schemas: MetadataSchemas, names: readonly Name[]) =>
  Object.fromEntries(
    names.map(name => {
      const kind = metadataOf[name]
      const own = kind === undefined ? {} : { metadata: schemas[kind]?.validate ?? null }
      return [name, Type.Optional(Type.Unsafe({ ...USER_FIELDS[name].schema, ...own }))]
    }),
  ) as { [Key in Name]: TOptional<TUnsafe<FieldValues[Key]>> }

/** An account that an administrator creates. */
export const NewAccount = (passwordMinLength: number, schemas: MetadataSchemas) =>
  Strict(
    {
      email: Email,
      password: Type.Optional(NewPassword(passwordMinLength)),
      passwordHash: Type.Optional(PasswordHash),
      emailVerified: Type.Optional(Type.Boolean({ examples: [true] })),
      ...fieldProperties(schemas, FIELD_NAMES),
    },
    // Either a password or a hash.
    {
      examples: [
        {
          email: 'ann@example.com',
          password: EXAMPLE_PASSWORD,
          firstName: 'Ann',
          lastName: 'Lee',
          roles: ['editor'],
        },
      ],
    },
  )

/** An id in a request: UUIDs are case-insensitive (RFC 9562 §4). */
export const InputId = Type.String({ normalize: 'lower', format: 'uuid' })

const Timestamp = Type.String({ format: 'date-time' })

/** The credentials of a user besides the password, in imports and exports. @param properties see `credentialSchemasOf`. */
export const FactorCredentials = (properties: TProperties) =>
  Strict(properties, { title: 'FactorCredentials' })

/** A line of an import. @param credentials see `credentialSchemasOf`. @param properties see `bulkPropertySchemasOf`. */
export const ImportedUser = (schemas: MetadataSchemas, credentials: TProperties, properties: TProperties) =>
  Strict(
    {
      email: Email,
      passwordHash: Type.Optional(PasswordHash),
      emailVerified: Type.Optional(Type.Boolean({ examples: [true] })),
      disabled: Type.Optional(Type.Boolean()),
      ...fieldProperties(schemas, FIELD_NAMES),
      ...properties,
      id: Type.Optional(InputId),
      createdAt: Type.Optional(Timestamp),
      updatedAt: Type.Optional(Timestamp),
      lastRequestAt: Type.Optional(
        Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'date-time' }),
      ),
      credentials: Type.Optional(FactorCredentials(credentials)),
      factors: Type.Optional(
        Type.Array(Type.Unsafe<Factor>({ type: 'string', enum: [...FACTORS] }), {
          uniqueItems: true,
          description: 'As exported; the factors of the user follow from `credentials`',
          examples: [['totp']],
        }),
      ),
      methods: Type.Optional(
        Type.Array(Type.String(), {
          maxItems: 100,
          description: 'As exported; the methods of the user follow from `passwordHash` and `credentials`',
          examples: [['password', 'totp']],
        }),
      ),
    },
    { title: 'ImportedUser' },
  )

/** The name of an API key or admin key, by which its owner recognises it. */
export const KeyName = Type.String({
  normalize: 'trim',
  minLength: 1,
  maxLength: 128,
  personName: true,
  examples: ['nightly import'],
})

/** When a new key expires; `null`, as without it: never. */
export const ExpiresAt = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  format: 'date-time',
  description: 'In the future; by default the key does not expire',
  examples: [null],
})

/** The scopes of a new key. */
export const Scopes = (declared: ScopeDescriptions, description: string) =>
  Type.Array(Type.Unsafe<string>({ type: 'string', enum: Object.keys(declared) }), {
    minItems: 1,
    uniqueItems: true,
    description,
    examples: [Object.keys(declared).slice(0, 1)],
  })

/** @param declared the scopes of admin keys. */
export const NewAdminKey = (declared: ScopeDescriptions) =>
  Strict({
    name: KeyName,
    scopes: Scopes(declared, 'The scopes of the key, among those that your key has'),
    expiresAt: Type.Optional(ExpiresAt),
  })

/** The body of every error (§7.1). */
export const ErrorBody = Type.Object(
  { errors: Type.Record(Type.String(), Type.Array(Type.String())) },
  { title: 'Errors' },
)

/**
 * The body of an error, which is the example in the OpenAPI document. Statuses that a route can have for several reasons name the most
 * likely one: `404: ErrorOf('userNotFound')`, of a feature `404: ErrorOf(ERRORS.noteNotFound)`.
 */
export const ErrorOf = (error: ErrorName | DeclaredError): typeof ErrorBody => {
  const { field, message } = typeof error === 'string' ? ERRORS[error] : error
  return { ...ErrorBody, examples: [errorBody(field, message)] }
}
