/**
 * Checks declarations of features when the service starts, before the store is opened: names, bounds and what one
 * member says of another. What TypeScript refuses is not checked again.
 */
import { existsSync } from 'node:fs'
import { type TSchema, Type } from '@sinclair/typebox'
import { Errors, ValueErrorType } from '@sinclair/typebox/errors'
import { ERRORS } from '#base/errors'
import { CORE_SIGN_IN_METHODS, IMPERSONATION } from '#core/accounts/sign-in-methods'
import { EVENTS } from '#core/audit-log/event'
import { ADMIN_SCOPES, USER_SCOPES } from '#core/auth/scopes'
import { COUNTERS, RATE_LIMITS, WRITE_LIMIT } from '#core/rate-limits/limits'
import { CORE_TABLES } from '#core/store/tables'
import { REQUEST_DECORATORS } from '#http/request-authentication'
import { FeatureError } from '#storage/stored-feature'
import { eventSchemasOf } from './assembly.ts'
import type { Feature } from './declaration.ts'

const SCOPE = '^[a-z][a-z0-9-]*:[a-z][a-z0-9-]*$'
/** The pattern of a name. Not `then`: the object of all services would be taken for a promise. */
const CAMEL_CASE = '^(?!then$)[a-z][a-zA-Z0-9]*$'
const KEBAB_CASE = '^[a-z][a-z0-9-]*$'
/** PostgreSQL cuts longer identifiers. The prefixes belong to the databases and to migrations. */
const TABLE = '^(?!pg_|sqlite_|kysely_)[a-z][a-z0-9_]{0,62}$'

/** Members of a declaration by name. @param example of a name. */
const members = (example: string, pattern: string, member: TSchema = Type.Unknown()): TSchema =>
  Type.Optional(Type.Record(Type.String({ pattern }), member, { additionalProperties: false, example }))

const Count = Type.Integer({ minimum: 1 })

/** Prometheus reserves names that begin with two underscores. */
const Labels = Type.Array(Type.String({ pattern: '^(?!__)[a-z_][a-z0-9_]*$' }), { uniqueItems: true })

/** What the types of TypeScript do not say of a declaration. `hint` is the end of a sentence. */
const Declaration = Type.Object({
  name: Type.String({ pattern: KEBAB_CASE, hint: 'must be lower case, such as notes' }),
  module: Type.String({ pattern: '^[a-z]+:', hint: 'must be import.meta.url of the file that exports it' }),
  migrations: members('0001_notes', '^\\d{4}_[a-z0-9_]+$'),
  tables: members(
    'notes_shared',
    TABLE,
    Type.Object({
      owner: Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
        hint: 'must be the column with the key of the user, or null if its rows belong to no user',
      }),
    }),
  ),
  events: members('note.created', '^[a-z][a-z0-9-]*(\\.[a-z][a-z0-9-]*)+$', Type.Object({})),
  services: members('notes', CAMEL_CASE),
  userScopes: members('notes:read', SCOPE),
  adminScopes: members('notes:read', SCOPE),
  settings: members('NOTES_KEPT', '^[A-Z][A-Z0-9_]*$'),
  errors: members(
    'noteNotFound',
    CAMEL_CASE,
    Type.Object({ status: Type.Integer({ minimum: 400, maximum: 599 }) }),
  ),
  rateLimits: members('new-notes', KEBAB_CASE, Type.Object({ points: Count, seconds: Count })),
  metrics: members('gatehouse_notes_added_total', '^[a-z][a-z0-9_]*$', Type.Object({ labels: Labels })),
  jobs: members('removeOld', CAMEL_CASE, Type.Object({ every: Type.Number({ minimum: 1_000 }) })),
  backgroundTasks: members('deliver', CAMEL_CASE),
  consumers: members('searchIndex', CAMEL_CASE),
  signInMethods: members(
    'emailCode',
    CAMEL_CASE,
    Type.Object({
      amr: Type.Array(Type.String({ pattern: '^[a-z][a-z0-9]*$' }), {
        minItems: 1,
        hint: "must be what the method verifies, in values of RFC 8176, such as ['otp']",
      }),
    }),
  ),
  guards: members('organization', CAMEL_CASE),
})

type Problems = Generator<string>

function* problemsOfShape(feature: Feature): Problems {
  for (const { path, schema, type, message } of Errors(Declaration, feature)) {
    const place = path.slice(1).replaceAll('/', '.') || 'declaration'
    const isName = type === ValueErrorType.ObjectAdditionalProperties
    const problem = isName ? `must be named like ${schema.example}` : schema.hint
    yield `The ${place} of the feature ${JSON.stringify(feature?.name)} ${problem ?? `is not valid: ${message}`}`
  }
}

function* problemsOfTables({ name, tables = {}, signInMethods = {} }: Feature): Problems {
  for (const [table, declared] of Object.entries(tables)) {
    const { owner, isFactor, isMailed, grantsAccess, signsIn, endsWithSessions } = declared
    if (owner === null && (isFactor || isMailed || grantsAccess))
      yield `The table ${table} of the feature ${name} needs an owner: rows that belong to no user are neither factors, nor mailed, nor grant access`
    if (endsWithSessions && !grantsAccess)
      yield `The table ${table} of the feature ${name} needs grantsAccess: rows that end with sessions are events`
    if (signsIn !== undefined && !(grantsAccess && Object.hasOwn(signInMethods, signsIn)))
      yield `The table ${table} of the feature ${name} needs grantsAccess, and a sign-in method of the feature with the name ${JSON.stringify(signsIn)}`
  }
}

function* problemsOfMigrations({ name, migrations = {} }: Feature): Problems {
  for (const [migration, steps] of Object.entries(migrations))
    if (!('sql' in steps || 'up' in steps))
      yield `The migration ${migration} of the feature ${name} has no function sql and no function up`
}

function* problemsOfSettings({ name, settings = {} }: Feature): Problems {
  for (const [setting, { read, default: byDefault }] of Object.entries(settings))
    try {
      if (byDefault !== null) read(byDefault)
    } catch (error) {
      yield `The setting ${setting} of the feature ${name} has the default ${JSON.stringify(byDefault)}, which its own reader rejects: it ${(error as Error).message}`
    }
}

function* problemsOf(feature: Feature): Problems {
  yield* problemsOfShape(feature)
  yield* problemsOfTables(feature)
  yield* problemsOfMigrations(feature)
  yield* problemsOfSettings(feature)
  const { name, operations = {}, reads = {}, routes } = feature
  const twice = Object.keys(reads).find(read => Object.hasOwn(operations, read))
  if (twice !== undefined) yield `The feature ${name} has an operation and a read with the name ${twice}`
  if (routes !== undefined && !(routes instanceof URL && existsSync(routes)))
    yield `The routes of the feature ${name} must be the URL of a folder, such as new URL('routes/', import.meta.url): there is no folder ${routes}`
}

/** Yields sentences. A consumer of a type of event that nothing records would wait forever. */
function* problemsOfConsumers(features: readonly Feature[]): Problems {
  const known = new Set(Object.keys(eventSchemasOf(features)))
  for (const { name, consumers = {} } of features)
    for (const [consumer, { types = [] }] of Object.entries(consumers))
      for (const type of types.filter(each => !known.has(each)))
        yield `The consumer ${consumer} of the feature ${name} names an unknown type of event: ${JSON.stringify(type)}`
}

/** Properties of a route's `config` that are no guards. */
const ROUTE_CONFIG = [
  'gate',
  'feature',
  'scope',
  'fieldScopes',
  'roles',
  'factors',
  'client',
  'reauthenticate',
  'rateLimit',
  'writeLimit',
  'compress',
  'isOpenToSites',
  'isDocumented',
]

/** The members whose names are unique in a service, with the names that the core uses. */
const UNIQUE: readonly (readonly [kind: string, member: keyof Feature, ofCore: readonly string[]])[] = [
  ['table', 'tables', CORE_TABLES],
  ['event', 'events', Object.keys(EVENTS)],
  ['service', 'services', []],
  ['user scope', 'userScopes', Object.keys(USER_SCOPES)],
  ['admin scope', 'adminScopes', Object.keys(ADMIN_SCOPES)],
  ['error', 'errors', Object.keys(ERRORS)],
  ['rate limit', 'rateLimits', [...Object.keys(RATE_LIMITS.perAddress), WRITE_LIMIT, ...COUNTERS]],
  ['sign-in method', 'signInMethods', [...Object.keys(CORE_SIGN_IN_METHODS), IMPERSONATION.method]],
  ['guard', 'guards', [...ROUTE_CONFIG, ...REQUEST_DECORATORS]],
]

/** The members that one feature can have. */
const SINGLE: readonly (readonly [kind: string, member: keyof Feature])[] = [
  ['second factor', 'secondFactor'],
  ['part memberships', 'memberships'],
  ['part resourceMetadata', 'resourceMetadata'],
]

/**
 * @param kind what the names belong to, such as `table`.
 * @param namesOf returns the names of one feature.
 * @throws {FeatureError} for the first name that two features, or a feature and the core, have.
 */
export const assertUnique = (
  kind: string,
  ofCore: readonly string[],
  features: readonly Feature[],
  namesOf: (feature: Feature) => readonly string[],
): void => {
  const owners = new Map(ofCore.map(name => [name, 'the core']))
  for (const feature of features)
    for (const name of namesOf(feature)) {
      const first = owners.get(name)
      const owner = `the feature ${feature.name}`
      if (first !== undefined)
        throw new FeatureError(`The ${kind} ${name} is declared twice: by ${first} and by ${owner}`)
      owners.set(name, owner)
    }
}

/** @throws {FeatureError} for the first mistake. {@link assertUnique} is called for names of the core that this module does not see. */
export const checkFeatures = (features: readonly Feature[]): void => {
  for (const feature of features) for (const problem of problemsOf(feature)) throw new FeatureError(problem)
  const names = new Set<string>()
  for (const { name } of features) {
    if (names.has(name)) throw new FeatureError(`The feature ${name} is declared twice`)
    names.add(name)
  }
  for (const [kind, member, ofCore] of UNIQUE)
    assertUnique(kind, ofCore, features, feature => Object.keys(feature[member] ?? {}))
  for (const [kind, member] of SINGLE) {
    const [first, second] = features.filter(feature => feature[member] !== undefined)
    if (first !== undefined && second !== undefined)
      throw new FeatureError(
        `The ${kind} is declared twice: by the feature ${first.name} and by the feature ${second.name}`,
      )
  }
  for (const problem of problemsOfConsumers(features)) throw new FeatureError(problem)
}
