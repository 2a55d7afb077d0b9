/** What routes take and give, as TypeBox schemas. A `title` makes a schema a named component of the OpenAPI document. */
import { Type } from '@sinclair/typebox'
import {
  ACTOR_TYPES,
  type Actor,
  DETAIL_PROPERTIES,
  EVENT_TYPES,
  type EventDetails,
  type EventType,
} from '../src/audit-log/event.ts'
import { SORTS, type Sort } from '../src/users/listing.ts'
import { EXAMPLE_PASSWORD, Strict } from '../src/validation/schemas.ts'

export { Email, KnownEmail, Name, NewPassword, Strict } from '../src/validation/schemas.ts'

export const Moment = Type.String({ format: 'date-time', description: 'ISO 8601 in UTC, with milliseconds' })
const NullableMoment = Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'date-time' })
export const NullableText = Type.Unsafe<string | null>({ type: ['string', 'null'] })
export const Id = Type.String({ format: 'uuid' })

/** A password that is presented: whatever it is, it is right or wrong. */
export const PresentedPassword = Type.String({
  text: 'any',
  format: 'password',
  examples: [EXAMPLE_PASSWORD],
})

/** A token from a mail. */
export const PresentedToken = Type.String({ minLength: 1, maxLength: 256 })

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
    impersonated: Type.Boolean({ description: 'Whether an administrator acts as the user by it' }),
    current: Type.Boolean({ description: 'Whether it is the one that asks' }),
  },
  { title: 'Session' },
)

/** The response to a request whose result is mailed. */
export const Accepted = Type.Object({ status: Type.Literal('accepted') })
export const ACCEPTED = { status: 'accepted' } as const

/** The body of every error (§7.1). */
export const ErrorBody = Type.Object(
  { errors: Type.Record(Type.String(), Type.Array(Type.String())) },
  { title: 'Errors' },
)

export const NextCursor = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  description: '`null` on the last page',
})

export const ProfilePage = Type.Object({ results: Type.Array(Profile), nextCursor: NextCursor })

export const AdminUserPage = Type.Object({
  results: Type.Array(AdminUser),
  nextCursor: NextCursor,
  total: Type.Optional(Type.Integer({ description: 'Of all pages; only with `count=true`' })),
})

/** Users on one page. */
export const DEFAULT_LIMIT = 20
export const MAX_LIMIT = 100

export const listProperties = {
  limit: Type.Integer({ minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT }),
  cursor: Type.Optional(
    Type.String({ maxLength: 4_096, description: 'The `nextCursor` of the page before' }),
  ),
  sort: Type.Unsafe<Sort>({ type: 'string', enum: [...SORTS], default: '-createdAt' }),
  search: Type.Optional(
    Type.String({ normalize: 'trim', minLength: 1, maxLength: 254, description: 'The start of a name' }),
  ),
}

/** A line of the audit log. */
export const AuditEvent = Type.Object(
  {
    id: Id,
    at: Moment,
    type: Type.Unsafe<EventType>({ type: 'string', enum: [...EVENT_TYPES] }),
    actor: Type.Object({
      type: Type.Unsafe<Actor['type']>({ type: 'string', enum: [...ACTOR_TYPES] }),
      id: NullableText,
    }),
    userId: Id,
    ip: NullableText,
    details: Type.Unsafe<EventDetails | null>({
      type: ['object', 'null'],
      properties: DETAIL_PROPERTIES,
    }),
  },
  { title: 'AuditEvent' },
)
