/** Checks declarations of features at the start, before the store is opened. */

import { ERRORS } from '#base/errors'
import type { Setting } from '#base/settings/readers'
import { ACCOUNT_MAILS } from '#core/accounts/mails'
import { CORE_SIGN_IN_METHODS, IMPERSONATION } from '#core/accounts/sign-in-methods'
import { EVENTS } from '#core/audit-log/event'
import { ADMIN_SCOPES, USER_SCOPES } from '#core/auth/scopes'
import { COUNTERS, RATE_LIMITS, WRITE_LIMIT } from '#core/rate-limits/limits'
import { eventSchemasOf } from '#feature/assembly'
import type { Feature } from '#feature/declaration'
import { REQUEST_DECORATORS } from '#http/request-authentication'
import { namesWith, SETTINGS } from '#process/config/settings'
import { METRICS } from '#process/metrics/declarations'
import { CORE_TABLES } from '#core/store/schema'
import { FeatureError } from '#storage/stored-feature'
import type { CoreServices } from './services.ts'

/** Names that features cannot use. A record, so that a service that is missing does not compile. */
const CORE_SERVICES: Readonly<Record<keyof CoreServices, true>> = {
  signUps: true,
  signIns: true,
  accountMethods: true,
  passwordSignIns: true,
  newAccounts: true,
  accountRemoval: true,
  emailAddresses: true,
  emailConfirmations: true,
  passwordChanges: true,
  passwordResets: true,
  factorRemoval: true,
  impersonation: true,
  sessions: true,
  users: true,
  auditLog: true,
  features: true,
  eventSchemas: true,
  userScopes: true,
  adminScopes: true,
  routeGuards: true,
  reauthentication: true,
  imports: true,
  exports: true,
  authenticator: true,
  jwks: true,
  adminAuthenticator: true,
  mails: true,
  metrics: true,
  status: true,
  warmUp: true,
  storage: true,
  eventFeed: true,
  consumers: true,
  eventStreams: true,
  rateLimits: true,
  rateLimitNames: true,
  clock: true,
  close: true,
}

const NAME = /^[a-z][a-z0-9-]*$/
const EVENT = /^[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)+$/
const SCOPE = /^[a-z][a-z0-9-]*:[a-z][a-z0-9-]*$/
const MIGRATION = /^\d{4}_[a-z0-9_]+$/
/** Not `then`: the object of all services would be taken for a promise. */
const SERVICE = /^(?!then$)[a-z][a-zA-Z0-9]*$/
/** PostgreSQL cuts longer identifiers. */
const TABLE = /^[a-z][a-z0-9_]{0,62}$/
const SETTING = /^[A-Z][A-Z0-9_]*$/
const METRIC = /^[a-z][a-z0-9_]*$/
/** Prometheus reserves names that begin with two underscores. */
const LABEL = /^(?!__)[a-z_][a-z0-9_]*$/
const COLUMN = /^[a-z_][a-z0-9_]{0,62}$/i
/** Tables of the engines, and of the migrations of the core. */
const RESERVED_TABLE = /^(pg_|sqlite_|kysely_)/

type Members = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const membersOf = (value: unknown): Members => (isObject(value) ? value : {})

const isText = (value: unknown): boolean => typeof value === 'string' && value.trim() !== ''

const isFunction = (value: unknown): value is (...args: unknown[]) => unknown => typeof value === 'function'

/** Yields what is wrong with one declaration, as the end of a sentence. */
type Problems = Generator<string>

function* problemsOfCleanUp(cleanUp: unknown): Problems {
  if (cleanUp === undefined) return
  const { column, after, firstAt } = membersOf(cleanUp)
  if (!(column && Number.isFinite(after)))
    yield 'has an incomplete cleanUp: name a column, and milliseconds after it'
  if (firstAt !== undefined && !isFunction(firstAt))
    yield 'has a cleanUp whose firstAt is no function, such as firstIdAt'
}

function* problemsOfGrantedAccess(grantsAccess: unknown): Problems {
  if (grantsAccess === undefined) return
  const { type, detail } = membersOf(grantsAccess)
  if (!(typeof type === 'string' && EVENT.test(type) && typeof detail === 'string' && detail !== ''))
    yield 'has an incomplete grantsAccess: name a type of event, and the property of its details for the key of the row'
}

function* problemsOfUnique(unique: unknown): Problems {
  const isList =
    Array.isArray(unique) && unique.every(columns => Array.isArray(columns) && columns.length > 0)
  if (unique !== undefined && typeof unique !== 'string' && !isList)
    yield "has a unique that is neither a column nor lists of columns, such as [['organization_id', 'email']]"
}

/** They delete rows by their owner, so without one they would delete nothing. */
const OF_OWNERS = ['isFactor', 'isMailed', 'grantsAccess', 'signsIn'] as const

function* problemsOfOwned(members: Members): Problems {
  for (const name of OF_OWNERS)
    if (members[name] !== undefined && members.owner === null) yield `has ${name} without an owner`
  if (members.signsIn !== undefined && members.grantsAccess === undefined)
    yield 'has signsIn without grantsAccess: name the event of a removed row'
}

function* problemsOfTable(name: string, declaration: unknown): Problems {
  const members = membersOf(declaration)
  const { owner, key, updatedAt, unique, grantsAccess, cleanUp } = members
  if (!TABLE.test(name)) yield 'must be named like notes_shared'
  if (RESERVED_TABLE.test(name)) yield 'has a name that is reserved for the database'
  if (!owner && owner !== null)
    yield 'has no owner: name the column with the key of the user, or declare owner: null if its rows belong to no user'
  if (!key) yield 'has no key: name the column of its primary key'
  yield* problemsOfGrantedAccess(grantsAccess)
  yield* problemsOfOwned(members)
  yield* problemsOfCleanUp(cleanUp)
  yield* problemsOfUnique(unique)
  for (const value of [owner ?? undefined, key, updatedAt, ...[unique].flat(2), membersOf(cleanUp).column])
    if (value !== undefined && !(typeof value === 'string' && COLUMN.test(value)))
      yield `has a column that is not valid: ${JSON.stringify(value)}`
}

function* problemsOfMigration(name: string, migration: unknown): Problems {
  if (!MIGRATION.test(name)) yield 'must be named like 0001_notes'
  const { sql, up } = membersOf(migration)
  if (!isFunction(sql) && !isFunction(up)) yield 'has no function sql and no function up'
}

function* problemsOfFunction(_: string, value: unknown): Problems {
  if (!isFunction(value)) yield 'is no function'
}

function* problemsOfEvent(name: string, schema: unknown): Problems {
  if (!EVENT.test(name)) yield 'must be named like note.created'
  if (!isObject(schema)) yield 'has no schema of its details'
}

function* problemsOfMail(_: string, mail: unknown): Problems {
  const { subject, body, de } = membersOf(mail)
  if (!subject || !isFunction(body)) yield 'needs a subject and a function body'
  const german = membersOf(de)
  if (de !== undefined && !(german.subject && isFunction(german.body)))
    yield 'needs a subject and a function body in de, too'
}

function* problemsOfService(name: string, value: unknown): Problems {
  if (!SERVICE.test(name)) yield 'must be named like notes'
  yield* problemsOfFunction(name, value)
}

function* problemsOfScope(name: string, description: unknown): Problems {
  if (!SCOPE.test(name)) yield 'must be named like notes:read'
  if (!isText(description)) yield 'has no description of what it allows'
}

function* problemsOfSetting(name: string, setting: unknown): Problems {
  const { read, default: byDefault, description } = membersOf(setting)
  if (!SETTING.test(name)) yield 'must be named like NOTES_KEPT'
  if (!isFunction(read)) yield 'has no reader, such as integer(1, 100)'
  if (byDefault !== null && typeof byDefault !== 'string')
    yield 'has no default: declare the text of one, or null if it is not set by default'
  if (!isText(description)) yield 'has no description of what it does'
  if (isFunction(read) && typeof byDefault === 'string') yield* problemsOfDefault(read, byDefault)
}

function* problemsOfDefault(read: (value: string) => unknown, byDefault: string): Problems {
  try {
    read(byDefault)
  } catch (error) {
    yield `has the default ${JSON.stringify(byDefault)}, which its own reader rejects: it ${(error as Error).message}`
  }
}

const isPositive = (value: unknown): boolean => Number.isInteger(value) && (value as number) > 0

const isErrorStatus = (status: unknown): boolean =>
  Number.isInteger(status) && (status as number) >= 400 && (status as number) <= 599

function* problemsOfError(name: string, error: unknown): Problems {
  const { code, status, field, message, retryAfter } = membersOf(error)
  if (!SERVICE.test(name)) yield 'must be named like noteNotFound'
  if (code !== name) yield 'is not declared with defineErrors'
  if (!isErrorStatus(status)) yield 'has no status from 400 to 599'
  if (!isText(field)) yield 'has no field: name the one of the input, or "global"'
  if (!isText(message)) yield 'has no message'
  if (retryAfter !== undefined && !isPositive(retryAfter))
    yield 'has a retryAfter that is no number of seconds'
}

function* problemsOfRateLimit(name: string, limit: unknown): Problems {
  const { points, seconds } = membersOf(limit)
  if (!NAME.test(name)) yield 'must be named like new-notes'
  if (!(isPositive(points) && isPositive(seconds))) yield 'needs points and seconds, both whole and positive'
}

function* problemsOfMetric(name: string, metric: unknown): Problems {
  const { type, help, labels, workers } = membersOf(metric)
  if (!METRIC.test(name)) yield 'must be named like gatehouse_notes_added_total'
  if (type !== 'counter' && type !== 'gauge') yield 'is not declared with counter or gauge'
  if (type === 'counter' && !name.endsWith('_total')) yield 'is a counter, whose name must end with _total'
  if (!isText(help) || /\n/.test(help as string)) yield 'needs a help of one line'
  if (!(Array.isArray(labels) && labels.every(label => LABEL.test(label))))
    yield 'has a label that is no name'
  else if (new Set(labels).size < labels.length) yield 'has a label twice'
  if (type === 'gauge' && !['sum', 'min', 'max'].includes(workers as string))
    yield 'needs how the gauges of workers become one: sum, min or max'
}

/** Milliseconds. */
const MIN_INTERVAL = 1_000

function* problemsOfJob(name: string, job: unknown): Problems {
  const { every, run } = membersOf(job)
  if (!SERVICE.test(name)) yield 'must be named like removeOld'
  if (!(Number.isFinite(every) && (every as number) >= MIN_INTERVAL))
    yield `needs every: at least ${MIN_INTERVAL} milliseconds from one run to the next`
  if (!isFunction(run)) yield 'has no function run'
}

function* problemsOfTask(name: string, value: unknown): Problems {
  if (!SERVICE.test(name)) yield 'must be named like deliver'
  yield* problemsOfFunction(name, value)
}

function* problemsOfConsumer(name: string, consumer: unknown): Problems {
  const { types, handle } = membersOf(consumer)
  if (!SERVICE.test(name)) yield 'must be named like searchIndex'
  if (!isFunction(handle)) yield 'has no function handle'
  if (types !== undefined && !(Array.isArray(types) && types.length > 0))
    yield "has types that are no list of events, such as ['user.created']; without types it gets all"
}

/** A value of RFC 8176, which a session keeps in a list separated by spaces. */
const AMR = /^[a-z][a-z0-9]*$/

function* problemsOfSignInMethod(name: string, method: unknown): Problems {
  const { amr, rejection, needsSecondFactor } = membersOf(method)
  if (!SERVICE.test(name)) yield 'must be named like emailCode'
  if (!(Array.isArray(amr) && amr.length > 0 && amr.every(value => AMR.test(value))))
    yield "needs amr: what it verifies, in values of RFC 8176, such as ['otp']"
  else if (amr.includes('mfa') && amr.at(-1) !== 'mfa') yield 'has an amr whose mfa is not last'
  if (!(typeof rejection === 'string' ? Object.hasOwn(ERRORS, rejection) : isText(membersOf(rejection).code)))
    yield 'needs a rejection: the error of a proof that is wrong, as defineErrors returns it'
  if (typeof needsSecondFactor !== 'boolean')
    yield 'must say with needsSecondFactor whether users with an authenticator app send a code too'
}

/** Properties of a route's `config` that are not a feature's. */
const CONFIG = [
  'gate',
  'feature',
  'scope',
  'fieldScopes',
  'roles',
  'factors',
  'reauthenticate',
  'rateLimit',
  'writeLimit',
  'compress',
  'isOpenToSites',
  'isOpenToSeveralUsers',
  'isDocumented',
]

function* problemsOfGuard(name: string, value: unknown): Problems {
  if (!SERVICE.test(name)) yield 'must be named like organization'
  if (CONFIG.includes(name) || REQUEST_DECORATORS.includes(name)) yield 'has a name that the core uses'
  yield* problemsOfFunction(name, value)
}

interface Part {
  /** The name of one member. */
  readonly kind: string
  readonly problems: (name: string, member: unknown) => Problems
}

/** The parts of a feature that have members. */
const PARTS: Readonly<Record<string, Part>> = {
  migrations: { kind: 'migration', problems: problemsOfMigration },
  tables: { kind: 'table', problems: problemsOfTable },
  operations: { kind: 'operation', problems: problemsOfFunction },
  reads: { kind: 'read', problems: problemsOfFunction },
  events: { kind: 'event', problems: problemsOfEvent },
  mails: { kind: 'mail', problems: problemsOfMail },
  services: { kind: 'service', problems: problemsOfService },
  userScopes: { kind: 'user scope', problems: problemsOfScope },
  adminScopes: { kind: 'admin scope', problems: problemsOfScope },
  settings: { kind: 'setting', problems: problemsOfSetting },
  errors: { kind: 'error', problems: problemsOfError },
  rateLimits: { kind: 'rate limit', problems: problemsOfRateLimit },
  metrics: { kind: 'metric', problems: problemsOfMetric },
  jobs: { kind: 'job', problems: problemsOfJob },
  backgroundTasks: { kind: 'background task', problems: problemsOfTask },
  consumers: { kind: 'consumer', problems: problemsOfConsumer },
  signInMethods: { kind: 'sign-in method', problems: problemsOfSignInMethod },
  guards: { kind: 'guard', problems: problemsOfGuard },
}

function* problemsOfMembers({ kind, problems }: Part, members: unknown, owner: string): Problems {
  if (members === undefined) return
  if (!isObject(members)) return yield `The ${kind}s ${owner} must be an object`
  for (const [name, member] of Object.entries(members))
    for (const problem of problems(name, member)) yield `The ${kind} ${name} ${owner} ${problem}`
}

/** Parts that are one function. */
const FUNCTIONS = ['commands', 'checkSettings', 'listMethods', 'secondFactor', 'userRemoved'] as const

function* problemsOfFunctions(feature: Members, owner: string): Problems {
  for (const part of FUNCTIONS)
    if (feature[part] !== undefined && !isFunction(feature[part]))
      yield `The ${part} ${owner} must be a function`
  const removal = membersOf(feature.userRemoval)
  if (feature.userRemoval !== undefined && !isFunction(removal.remove))
    yield `The userRemoval ${owner} must have a function remove`
  if (feature.userRemoved !== undefined && feature.userRemoval === undefined)
    yield `The feature ${String(feature.name)} has userRemoved without userRemoval`
  if (feature.pages !== undefined && !isFunction(feature.pages))
    yield `The pages ${owner} must be a function, such as () => import('./pages.ts')`
  if (feature.console !== undefined && !isFunction(feature.console))
    yield `The console ${owner} must be a function, such as () => import('./console-pages.ts')`
}

function* problemsOfSignInTables({ tables, signInMethods }: Members, owner: string): Problems {
  for (const [name, table] of Object.entries(membersOf(tables))) {
    const { signsIn } = membersOf(table)
    if (signsIn !== undefined && !Object.hasOwn(membersOf(signInMethods), String(signsIn)))
      yield `The table ${name} ${owner} has a signsIn that is none of the feature's signInMethods: ${JSON.stringify(signsIn)}`
  }
}

/** Yields sentences. The types of TypeScript are checked too, because a feature may be written in JavaScript. */
function* problemsOf(feature: unknown): Problems {
  if (!isObject(feature)) return yield 'The list of features has a member that is not a feature'
  const { name, module, operations, reads } = feature
  if (typeof name !== 'string' || !NAME.test(name))
    return yield `The feature name ${JSON.stringify(name)} must be lower case, such as "notes"`
  const owner = `of the feature ${name}`
  if (typeof module !== 'string' || !URL.canParse(module))
    yield `The module ${owner} must be import.meta.url of the file that exports it`
  for (const [name, part] of Object.entries(PARTS)) yield* problemsOfMembers(part, feature[name], owner)
  const twice = Object.keys(membersOf(reads)).find(read => Object.hasOwn(membersOf(operations), read))
  if (twice !== undefined) yield `The feature ${name} has an operation and a read with the name ${twice}`
  yield* problemsOfSignInTables(feature, owner)
  yield* problemsOfFunctions(feature, owner)
  if (feature.routes !== undefined && !(feature.routes instanceof URL && feature.routes.protocol === 'file:'))
    yield `The routes ${owner} must be the URL of a folder, such as new URL('routes/', import.meta.url)`
}

/** Settings with those that name a file: `NOTES_KEY` and `NOTES_KEY_FILE`. */
const withFileNames = (settings: Readonly<Record<string, Setting>>): Readonly<Record<string, unknown>> => ({
  ...settings,
  ...Object.fromEntries(namesWith('canBeFile', settings).map(name => [`${name}_FILE`, true])),
})

/** @param names each with its owner. @throws {FeatureError} for the first name that occurs twice. */
const assertUnique = (kind: string, names: readonly (readonly [name: string, owner: string])[]): void => {
  const owners = new Map<string, string>()
  for (const [name, owner] of names) {
    const first = owners.get(name)
    if (first !== undefined)
      throw new FeatureError(`The ${kind} ${name} is declared twice: by ${first} and by ${owner}`)
    owners.set(name, owner)
  }
}

/** @throws {FeatureError} for a consumer of a type of event that no feature declares: it would wait forever. */
const checkConsumedTypes = (features: readonly Feature[]): void => {
  const known = new Set(Object.keys(eventSchemasOf(features)))
  for (const { name: feature, consumers = {} } of features)
    for (const [name, { types = [] }] of Object.entries(consumers)) {
      const unknown = types.find(type => !known.has(type))
      if (unknown !== undefined)
        throw new FeatureError(
          `The consumer ${name} of the feature ${feature} names a type of event that there is not: ${JSON.stringify(unknown)}`,
        )
    }
}

/** @throws {FeatureError} for the first declaration that is not valid, or that two features, or a feature and the core, share. */
export const checkFeatures = (features: readonly Feature[]): void => {
  for (const feature of features) for (const problem of problemsOf(feature)) throw new FeatureError(problem)
  const twice = features.find(({ name }, index) => features.findIndex(other => other.name === name) !== index)
  if (twice !== undefined) throw new FeatureError(`The feature ${twice.name} is declared twice`)
  const [first, second] = features.filter(({ secondFactor }) => secondFactor !== undefined)
  if (first !== undefined && second !== undefined)
    throw new FeatureError(
      `The second factor is declared twice: by the feature ${first.name} and by the feature ${second.name}`,
    )
  const shared = (
    kind: string,
    ofCore: readonly string[],
    part: (feature: Feature) => object | undefined,
  ): void =>
    assertUnique(kind, [
      ...ofCore.map(name => [name, 'the core'] as const),
      ...features.flatMap(feature =>
        Object.keys(part(feature) ?? {}).map(name => [name, `the feature ${feature.name}`] as const),
      ),
    ])
  shared('table', CORE_TABLES, ({ tables }) => tables)
  shared('event', Object.keys(EVENTS), ({ events }) => events)
  shared('mail', Object.keys(ACCOUNT_MAILS), ({ mails }) => mails)
  shared('service', Object.keys(CORE_SERVICES), ({ services }) => services)
  shared('user scope', Object.keys(USER_SCOPES), ({ userScopes }) => userScopes)
  shared('admin scope', Object.keys(ADMIN_SCOPES), ({ adminScopes }) => adminScopes)
  shared(
    'setting',
    Object.keys(withFileNames(SETTINGS)),
    ({ settings }) => settings && withFileNames(settings),
  )
  shared('error', Object.keys(ERRORS), ({ errors }) => errors)
  shared(
    'rate limit',
    [...Object.keys(RATE_LIMITS.perAddress), WRITE_LIMIT, ...COUNTERS],
    ({ rateLimits }) => rateLimits,
  )
  shared(
    'sign-in method',
    [...Object.keys(CORE_SIGN_IN_METHODS), IMPERSONATION.method],
    ({ signInMethods }) => signInMethods,
  )
  shared('metric', Object.keys(METRICS), ({ metrics }) => metrics)
  shared('guard', [], ({ guards }) => guards)
  checkConsumedTypes(features)
}
