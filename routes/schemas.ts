/** TypeBox schemas of requests and responses. A `title` makes a schema a named component of the OpenAPI document. */
import { type Static, type TObject, type TProperties, type TUnsafe, Type } from '@sinclair/typebox'
import { ACTOR_TYPES, type Actor, detailProperties, type EventSchemas } from '#core/audit-log/event'
import type { ReturnTargets } from '#core/return-targets/return-targets'
import { MAX_RETURN_URL } from '#core/return-targets/return-url'
import { FACTORS, type Factor } from '#core/users/factors'
import {
  FIELD_NAMES,
  type FieldName,
  type FieldValues,
  PROFILE_FIELDS,
  USER_FIELDS,
} from '#core/users/fields'
import { SORTS, type Sort } from '#core/users/listing'
import { InputId, Strict, withExample } from '#http/validation/schemas'

export {
  Email,
  ErrorBody,
  ErrorOf,
  ExpiresAt,
  FactorCredentials,
  fieldProperties,
  InputId,
  KeyName,
  KnownEmail,
  Name,
  NewAdminKey,
  NewPassword,
  OptionalCode,
  PasswordHash,
  PatternText,
  PresentedPassword,
  Role,
  Scopes,
  Strict,
  withExample,
} from '#http/validation/schemas'

export const Timestamp = Type.String({
  format: 'date-time',
  description: 'ISO 8601 in UTC, with milliseconds',
})
export const NullableTimestamp = Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'date-time' })
export const NullableText = Type.Unsafe<string | null>({ type: ['string', 'null'] })
/** An id in a response. */
export const Id = Type.String({ format: 'uuid' })
const NullableId = (description: string) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'uuid', description })

const ClientAddress = withExample(NullableText, '192.0.2.7')
const Later = withExample(Timestamp, '2027-02-01T09:30:00.000Z')
export const Texts = (example: string) =>
  Type.Unsafe<readonly string[]>(Type.Array(Type.String(), { examples: [[example]] }))

/** A token from a mail. */
export const PresentedToken = Type.String({
  minLength: 1,
  maxLength: 256,
  examples: ['0193a1c84f10mN2xQ7tVb9KdRw3yLs5hJf8gTz1aXe4uNi6oBv0'],
})

/** Where the page behind a mailed link, or the callback of a provider, leads back to. @param targets `app.services.returnTargets` */
export const ReturnTo = (targets: ReturnTargets) =>
  Type.Optional(
    Type.String({
      maxLength: MAX_RETURN_URL,
      violations: (text: string) =>
        targets.parse(text) === null
          ? ['must be a URL such as https://app.example.com/welcome, whose origin is in RETURN_ORIGINS']
          : [],
      description: 'Where the pages of the service lead back to: a URL whose origin is in `RETURN_ORIGINS`',
      // None: it would be refused where the setting does not name its origin.
      examples: [],
    }),
  )

/** Any parameter of a page, once or repeated: nobody types a URL, so none is refused but for its length. */
const OneParameter = Type.String({ maxLength: MAX_RETURN_URL, text: 'any' })
const AnyParameter = Type.Unsafe<unknown>(Type.Union([OneParameter, Type.Array(OneParameter)]))

/** A parameter that a page reads. */
export const PageParameter = Type.Optional(AnyParameter)

/** A body whose members are all optional: requests may have none. */
export const OptionalBody = <Properties extends TProperties>(properties: Properties) =>
  Type.Unsafe<Static<TObject<Properties>> | null>({ ...Strict(properties), type: ['object', 'null'] })

/** The query of a page: what it does not know, such as `utm_source`, is ignored, what is too long refused. */
export const pageQuery = <Properties extends TProperties>(properties: Properties) =>
  Type.Object(properties, { additionalProperties: AnyParameter })

/** What a person entered into a form of a page. The API validates it. */
export const FormText = Type.String({ text: 'any' })

/** A proof of identity in a form, for actions that need one. */
export const ProofFields = { password: Type.Optional(FormText), code: Type.Optional(FormText) }

const MAX_PREFILLED = 254

/** The e-mail that a link to a page fills in. Repeated or too long, it is ignored: the person enters theirs. */
export const prefilledEmail = ({ email }: { readonly email?: unknown }): string | undefined =>
  typeof email === 'string' && email.length <= MAX_PREFILLED && email.isWellFormed() ? email : undefined

/** The schema of a form of a page. Pages are not in the OpenAPI document. */
export const pageForm = <Properties extends TProperties>(properties: Properties) => ({
  schema: { hide: true, querystring: pageQuery({}), body: Strict(properties) },
})

/** The schema of a page that is opened by a link. Mail gateways and trackers append parameters, which no page reads. */
export const linkedPage = <Properties extends TProperties>(query: Properties) => ({
  schema: { hide: true, querystring: pageQuery(query) },
})

export const IdParams = Strict({ id: InputId })

/** Fields of a user in a response. */
const shownFields = <Name extends FieldName>(names: readonly Name[]) =>
  Object.fromEntries(names.map(name => [name, Type.Unsafe(USER_FIELDS[name].responseSchema)])) as {
    [Key in Name]: TUnsafe<FieldValues[Key]>
  }

/** The account as its user sees it. */
const accountProperties = {
  id: Id,
  email: Type.String({ examples: ['ann@example.com'] }),
  emailVerified: Type.Boolean({ examples: [true] }),
  ...shownFields(FIELD_NAMES),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  lastRequestAt: NullableTimestamp,
}
export const Account = Type.Object(accountProperties, { title: 'Account' })

export const AdminUser = Type.Object(
  {
    ...accountProperties,
    disabled: Type.Boolean(),
    factors: Type.Unsafe<readonly Factor[]>({
      type: 'array',
      items: { type: 'string', enum: [...FACTORS] },
      description: 'Ways to prove the identity besides the password',
      examples: [['totp']],
    }),
    methods: Type.Unsafe<readonly string[]>(
      Type.Array(Type.String(), {
        description:
          'The sign-in methods and factors that the user has, each once; those by mail are not listed',
        examples: [['password', 'totp', 'identity']],
      }),
    ),
  },
  { title: 'AdminUser' },
)

/** The account as other users see it: without the e-mail. */
export const Profile = Type.Object(
  { id: Id, ...shownFields(PROFILE_FIELDS), createdAt: Timestamp },
  { title: 'Profile' },
)

const AccessToken = Type.String({
  examples: ['eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIwMTkzNmI3ZSJ9.kWl3sYp7Zb0mXq2tVr5uNe8oJd1fHg4aLc6iTy9wRxE'],
})

export const SignedIn = Type.Object(
  { accessToken: AccessToken, expiresAt: Later, user: Account },
  { title: 'SignedIn' },
)

const Amr = Type.Unsafe<readonly string[]>(
  Type.Array(Type.String(), {
    description:
      'How the user was authenticated (RFC 8176); `mfa` for two factors, until the user removes what gave the second one',
    examples: [['pwd', 'otp', 'mfa']],
  }),
)

/** A way to sign in, or a second factor. */
export const Method = Type.Object(
  {
    method: Type.String({ examples: ['passkey'] }),
    id: NullableId('If a user can have several'),
    label: withExample(NullableText, 'Work laptop'),
    addedAt: NullableTimestamp,
    lastUsedAt: NullableTimestamp,
    isFactor: Type.Boolean({ description: 'Whether it counts as a second factor' }),
  },
  { title: 'Method' },
)

export const Session = Type.Object(
  {
    id: Id,
    createdAt: Timestamp,
    lastRequestAt: Type.String({
      format: 'date-time',
      description: 'The last request of this session; up to a minute old, except for the current session',
    }),
    expiresAt: Later,
    ip: ClientAddress,
    userAgent: withExample(NullableText, 'curl/8.14.1'),
    method: Type.Unsafe<string | null>({
      type: ['string', 'null'],
      description: 'The sign-in method that opened it; `null` if an earlier release did',
      examples: ['password'],
    }),
    amr: Amr,
    impersonated: Type.Boolean({ description: 'Whether an administrator impersonates the user in it' }),
    current: Type.Boolean({ description: 'Whether it is the session of this request', examples: [true] }),
  },
  { title: 'Session' },
)

/** An API key or admin key as lists show it. */
const keyProperties = {
  id: Id,
  name: Type.String({ examples: ['nightly import'] }),
  prefix: Type.String({ description: 'The beginning of the key', examples: ['gate_pat_mN2x'] }),
  scopes: Texts('users:read'),
  createdAt: Timestamp,
  expiresAt: withExample(NullableTimestamp, null),
  lastUsedAt: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    format: 'date-time',
    description: 'Up to a minute old',
  }),
}

/** The checksum of the example is wrong, so that scanners for secrets ignore it. */
const ShownKey = (prefix: string) =>
  Type.String({
    description: 'The key; shown only here',
    examples: [`${prefix}mN2xQ7tVb9KdRw3yLs5hJf8gTz1aXe4uNi6oBv0pCk4000000`],
  })

/** The body of changes of credentials: whether the user's other sessions end. */
export const EndOthers = Strict({
  endOthers: Type.Boolean({
    default: false,
    description: 'Whether your other sessions end',
  }),
})

export const ApiKey = Type.Object(keyProperties, { title: 'ApiKey' })

export const CreatedApiKey = Type.Object(
  { token: ShownKey('gate_pat_'), apiKey: ApiKey },
  { title: 'CreatedApiKey' },
)

/** RFC 7662 §2.2. An invalid token has no property but `active`. */
export const Introspection = Type.Object(
  {
    active: Type.Boolean(),
    token_type: Type.Optional(Type.Literal('Bearer')),
    sub: Type.Optional(Type.String({ format: 'uuid', description: 'The id of the user' })),
    scope: Type.Optional(
      Type.String({ description: 'What the token allows, separated by spaces; a session allows everything' }),
    ),
    exp: Type.Optional(
      Type.Integer({ description: 'Seconds since the epoch; absent if an API key does not expire' }),
    ),
    iat: Type.Optional(
      Type.Integer({
        description: 'When the user signed in; absent for API keys and impersonated sessions',
      }),
    ),
    auth_time: Type.Optional(
      Type.Integer({
        description:
          'When the user last proved their identity (RFC 9470 §6.2); absent where `iat` is, and while no proof counts any more',
      }),
    ),
    amr: Type.Optional(Amr),
    sid: Type.Optional(Type.String({ format: 'uuid', description: 'The id of the session' })),
    jti: Type.Optional(
      Type.String({ format: 'uuid', description: 'The id of the API key, or of the grant' }),
    ),
    client_id: Type.Optional(
      Type.String({ format: 'uuid', description: 'The client that got the token; absent for other tokens' }),
    ),
    roles: Type.Optional(Type.Unsafe<readonly string[]>(Type.Array(Type.String()))),
    org: Type.Optional(
      Type.String({ description: 'The id of the organization that a token of a client is limited to' }),
    ),
    act: Type.Optional(
      Type.Object(
        { sub: Type.String() },
        { description: 'The id of the admin key that impersonates the user (RFC 8693 §4.1)' },
      ),
    ),
  },
  {
    title: 'Introspection',
    examples: [
      {
        active: true,
        token_type: 'Bearer',
        sub: '01936b7e-4a5c-7d3e-9f10-2b3c4d5e6f70',
        scope: 'account:read account:write users:read',
        exp: 1_801_474_200,
        iat: 1_793_611_800,
        auth_time: 1_793_615_400,
        amr: ['pwd'],
        sid: '01936b7e-9c41-7b22-8a6d-7f8091a2b3c4',
        roles: ['editor'],
      },
    ],
  },
)

export const Introspections = Type.Object(
  { results: Type.Array(Introspection, { description: 'In the order of the tokens' }) },
  { title: 'Introspections' },
)

export const Invalidations = Type.Object(
  {
    cursor: Type.String({ examples: ['1b4e28ba-2fa1-4c6e-9d2f-0c8a5f1f3c11:42'] }),
    ids: Type.Unsafe<readonly string[]>(
      Type.Array(Type.String(), {
        description: 'Users, admin keys, clients and organizations, each once',
        examples: [['01936b7e-4a5c-7d3e-9f10-2b3c4d5e6f70']],
      }),
    ),
    reset: Type.Boolean({
      description: 'Whether the cursor is not known any more: forget everything that is kept',
    }),
  },
  { title: 'Invalidations' },
)

export const AdminKey = Type.Object(
  {
    ...keyProperties,
    prefix: withExample(keyProperties.prefix, 'gate_adm_mN2x'),
    createdBy: Type.Unsafe<string | null>({
      type: ['string', 'null'],
      examples: ['env'],
      description: 'The id of the admin key that created it; `null` if the command line did',
    }),
  },
  { title: 'AdminKey' },
)

export const CreatedAdminKey = Type.Object(
  { adminKey: ShownKey('gate_adm_'), key: AdminKey },
  { title: 'CreatedAdminKey' },
)

const literals = <Values extends readonly string[]>(...values: Values) =>
  Type.Unsafe<Values[number]>({ type: 'string', enum: values })

export const Status = Type.Object(
  {
    service: Type.Literal('gatehouse'),
    version: Type.String({ examples: ['1.2.3'] }),
    engine: literals('sqlite', 'postgres'),
    workers: Type.Integer({ description: 'Processes that share the port (`WORKERS`)' }),
    environment: literals('development', 'production', 'test'),
    startedAt: Type.String({ format: 'date-time', description: 'When the responding process started' }),
    passwordHash: Type.Object(
      {
        algorithm: Type.Literal('argon2id'),
        memoryKiB: Type.Integer(),
        iterations: Type.Integer(),
        parallelism: Type.Integer(),
      },
      { description: 'How new passwords are hashed' },
    ),
    rateLimits: Type.Boolean({ description: 'Whether rate limits are on' }),
    requestLog: Type.Boolean({ description: 'Whether each request is logged' }),
    mail: literals('smtp', 'files', 'off'),
    users: Type.Unsafe<number | null>({
      type: ['integer', 'null'],
      description:
        'The exact number of users; `null` for a key without the scope `users:read`, and with `count` other than `true`',
      examples: [100_000],
    }),
    approximateUsers: Type.Optional(
      Type.Integer({ description: 'About the number of users; only with `count=approximate`' }),
    ),
    cache: Type.Object(
      {
        entries: Type.Integer(),
        capacity: Type.Integer({ description: 'How many tokens fit, if their users have no metadata' }),
      },
      { description: 'The cached tokens of the responding process' },
    ),
    replica: Type.Union(
      [
        Type.Object({
          inUse: Type.Boolean({ description: 'Whether lists are read from it' }),
          lag: Type.Unsafe<number | null>({
            type: ['number', 'null'],
            description: 'Seconds by which it is at most behind acknowledged writes; `null` if not known',
          }),
          problem: Type.Unsafe<string | null>({
            type: ['string', 'null'],
            description: 'Why it is not used; `null` if it is',
            examples: [null],
          }),
        }),
        Type.Null(),
      ],
      { description: 'The replica for lists (`DATABASE_READ_URL`), as the responding process sees it' },
    ),
  },
  { title: 'Status' },
)

/** The response to a request whose result is mailed. */
export const Accepted = Type.Object({ status: Type.Literal('accepted') }, { title: 'Accepted' })
export const ACCEPTED = { status: 'accepted' } as const

export const NextCursor = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  description: '`null` on the last page',
  examples: [null],
})

export const ProfilePage = Type.Object(
  { results: Type.Array(Profile), nextCursor: NextCursor },
  { title: 'ProfilePage' },
)

/** What a client wants to know of the number of items. */
export const Count = (description: string) =>
  Type.Unsafe<boolean | 'approximate'>({
    type: ['boolean', 'string'],
    enum: [true, false, 'approximate'],
    description,
  })

export const AdminUserPage = Type.Object(
  {
    results: Type.Array(AdminUser),
    nextCursor: NextCursor,
    total: Type.Optional(Type.Integer({ description: 'The number of all matches; only with `count=true`' })),
    approximateTotal: Type.Optional(
      Type.Integer({
        description:
          'About the number of all matches, exact up to a few thousand in most cases; only with `count=approximate`',
      }),
    ),
  },
  { title: 'AdminUserPage' },
)

export const SessionList = Type.Object({ results: Type.Array(Session) }, { title: 'SessionList' })
export const MethodList = Type.Object({ results: Type.Array(Method) }, { title: 'MethodList' })
export const ApiKeyList = Type.Object({ results: Type.Array(ApiKey) }, { title: 'ApiKeyList' })
export const AdminKeyList = Type.Object({ results: Type.Array(AdminKey) }, { title: 'AdminKeyList' })

/** Items per page. */
export const DEFAULT_LIMIT = 20
export const MAX_LIMIT = 100

/** A filter by time in the query of a list. */
export const TimeFilter = (description: string) =>
  Type.Optional(Type.String({ format: 'date-time', description }))

/** The query of a list with pages. */
export const pageProperties = {
  limit: Type.Integer({ minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT }),
  cursor: Type.Optional(
    Type.String({ maxLength: 4_096, description: 'The `nextCursor` of the previous page' }),
  ),
}

/** The query of a list of users. */
export const listProperties = {
  ...pageProperties,
  sort: Type.Unsafe<Sort>({ type: 'string', enum: [...SORTS], default: '-createdAt' }),
  search: Type.Optional(
    Type.String({ normalize: 'trim', minLength: 1, maxLength: 254, description: 'The start of a name' }),
  ),
}

const eventProperties = (schemas: EventSchemas) => ({
  id: Id,
  at: Timestamp,
  type: Type.Unsafe<string>({
    type: 'string',
    enum: Object.keys(schemas),
    examples: ['user.signed-in'],
  }),
  actor: Type.Object({
    type: Type.Unsafe<Actor['type']>({ type: 'string', enum: [...ACTOR_TYPES] }),
    id: withExample(NullableText, '01936b7e-4a5c-7d3e-9f10-2b3c4d5e6f70'),
  }),
  ip: ClientAddress,
  details: Type.Unsafe<Readonly<Record<string, unknown>> | null>({
    type: ['object', 'null'],
    properties: detailProperties(schemas),
    examples: [{ session: '01936b7e-9c41-7b22-8a6d-7f8091a2b3c4' }],
  }),
})

/** An event of the audit log. @param schemas see `app.services.eventSchemas`. */
export const auditEvent = (schemas: EventSchemas) => {
  const { id, at, type, actor, ...others } = eventProperties(schemas)
  const userId = NullableId('`null` if the event concerns no user')
  return Type.Object({ id, at, type, actor, userId, ...others }, { title: 'AuditEvent' })
}

/** An event of the own account. */
export const accountEvent = (schemas: EventSchemas) =>
  Type.Object(eventProperties(schemas), { title: 'AccountEvent' })
