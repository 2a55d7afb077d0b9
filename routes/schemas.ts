/** What routes take and give, as TypeBox schemas. A `title` makes a schema a named component of the OpenAPI document. */
import { type TProperties, Type } from '@sinclair/typebox'
import { PASSWORD_MAX_LENGTH } from '../src/auth/passwords.ts'
import { SORTS, type Sort } from '../src/users/user-list.ts'

/** Strict: a property that is not declared is refused. */
export const Strict = <T extends TProperties>(properties: T, options = {}) =>
  Type.Object(properties, { additionalProperties: false, ...options })

const Moment = Type.String({ format: 'date-time', description: 'ISO 8601 in UTC, with milliseconds' })
const NullableMoment = Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'date-time' })
const NullableText = Type.Unsafe<string | null>({ type: ['string', 'null'] })
const Id = Type.String({ format: 'uuid' })

/** RFC 5321 §4.5.3.1.3 gives a path 256 octets with its two brackets. */
export const Email = Type.String({ normalize: 'email', format: 'email', maxLength: 254 })

/** Characters are Unicode code points; `null` clears the name. */
export const Name = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  normalize: 'trim',
  minLength: 1,
  maxLength: 128,
})

/** A password that is chosen; NUL is a character like any other. */
export const NewPassword = (minLength: number) =>
  Type.String({
    minLength,
    maxLength: PASSWORD_MAX_LENGTH,
    chosenPassword: true,
    text: 'any',
    format: 'password',
  })

/** A password that is presented: whatever it is, it is right or wrong. */
export const PresentedPassword = Type.String({ text: 'any', format: 'password' })

/** Ids are UUIDs, which are equal in any letter case (RFC 9562 §4). */
export const IdParams = Strict({ id: Type.String({ normalize: 'lower', format: 'uuid' }) })

/** The user's own view. */
const accountProperties = {
  id: Id,
  email: Type.String(),
  firstName: NullableText,
  lastName: NullableText,
  emailVerified: Type.Boolean(),
  createdAt: Moment,
  updatedAt: Moment,
  lastRequestAt: NullableMoment,
}
export const Account = Type.Object(accountProperties, { title: 'Account' })

export const AdminUser = Type.Object(
  { ...accountProperties, disabled: Type.Boolean() },
  { title: 'AdminUser' },
)

/** What other users see: never an e-mail. */
export const Profile = Type.Object(
  { id: Id, firstName: NullableText, lastName: NullableText, createdAt: Moment },
  { title: 'Profile' },
)

export const SignedIn = Type.Object(
  { accessToken: Type.String(), expiresAt: Moment, user: Account },
  { title: 'SignedIn' },
)

export const Session = Type.Object(
  {
    id: Id,
    createdAt: Moment,
    lastRequestAt: Type.String({
      format: 'date-time',
      description: 'Of this session; up to a minute old, but for the current one',
    }),
    expiresAt: Moment,
    ip: NullableText,
    userAgent: NullableText,
    current: Type.Boolean({ description: 'Whether it is the one that asks' }),
  },
  { title: 'Session' },
)

/** The body of every error (§7.1). */
export const ErrorBody = Type.Object(
  { errors: Type.Record(Type.String(), Type.Array(Type.String())) },
  { title: 'Errors' },
)

const NextCursor = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  description: '`null` on the last page',
})

export const ProfilePage = Type.Object({ results: Type.Array(Profile), nextCursor: NextCursor })

export const AdminUserPage = Type.Object({
  results: Type.Array(AdminUser),
  nextCursor: NextCursor,
  total: Type.Optional(Type.Integer({ description: 'Of all pages; only with `count=true`' })),
})

export const listProperties = {
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 20 }),
  cursor: Type.Optional(
    Type.String({ maxLength: 4_096, description: 'The `nextCursor` of the page before' }),
  ),
  sort: Type.Unsafe<Sort>({ type: 'string', enum: [...SORTS], default: '-createdAt' }),
  search: Type.Optional(
    Type.String({ normalize: 'trim', minLength: 1, maxLength: 254, description: 'The start of a name' }),
  ),
}
