/**
 * A feature: a capability with its own data, declared once. Migrations, both engines, deletion with the user, clean-up, `copy`,
 * event types, mails, commands and `app.services` follow from the declaration. docs/extending.md builds one.
 */
import type { Static } from '@sinclair/typebox'
import type { Command } from 'commander'
import type { BaseLogger } from 'pino'
import { ACCOUNT_MAILS } from './accounts/mails.ts'
import { type Actor, type AuditEvent, EVENTS, type EventSchemas } from './audit-log/event.ts'
import { newId } from './ids.ts'
import type { MailKinds, MailSender } from './mail/kinds.ts'
import { FeatureError } from './storage/feature-error.ts'
import type { FeatureOperation, FeatureRead, FeatureStore, StoredFeature } from './storage/features.ts'
import { CORE_TABLES } from './storage/schema.ts'
import type { Users } from './users/users.ts'

/** The types of events of the core and of the features. */
export const eventSchemasOf = (features: readonly Feature[]): EventSchemas =>
  Object.assign({}, EVENTS, ...features.map(({ events }) => events))

/** What the services of a feature are created with. */
export interface FeatureDeps<
  Operations extends Readonly<Record<string, FeatureOperation>>,
  Reads extends Readonly<Record<string, FeatureRead>>,
  Events extends EventSchemas,
  Mails extends MailKinds,
> {
  /** Calls the operations and reads of the feature. */
  readonly store: FeatureStore<Operations, Reads>
  /** Sends the mails of the feature. On the command line nothing is sent. */
  readonly mails: MailSender<Mails>
  /** Creates an event of the feature, now. An operation records it with `recordStatement`. */
  readonly newEvent: <Type extends keyof Events & string>(
    type: Type,
    actor: Actor,
    userId: string,
    details: Static<Events[Type]>,
  ) => AuditEvent
  readonly users: Users
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly logger: Pick<BaseLogger, 'error' | 'warn' | 'info'>
}

/** The features of a list have different dependencies; {@link defineFeature} types those of one. */
// biome-ignore lint/suspicious/noExplicitAny: `never` and `unknown` accept no declaration
type AnyFeatureDeps = FeatureDeps<any, any, any, any>

/** Options of the command line that select the database. */
interface DatabaseOptions {
  readonly database?: string | undefined
}

/** Runs `use` with the services of the feature, on the store of the environment or of `--database`. */
export type WithServices<Services> = (
  options: DatabaseOptions,
  use: (services: Services) => Promise<void>,
) => Promise<void>

export interface Feature<Services extends object = object> extends StoredFeature {
  readonly events?: EventSchemas
  readonly mails?: MailKinds
  /** Adds commands to the command line. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly commands?: (program: Command, withServices: WithServices<any>) => void
  /** Becomes part of `app.services`. */
  readonly services?: (deps: AnyFeatureDeps) => Services
}

interface FeatureDeclaration<
  Operations extends Readonly<Record<string, FeatureOperation>>,
  Reads extends Readonly<Record<string, FeatureRead>>,
  Events extends EventSchemas,
  Mails extends MailKinds,
  Services extends object,
> extends StoredFeature {
  readonly operations?: Operations
  readonly reads?: Reads
  /** Types of events, with the schema of their details. */
  readonly events?: Events
  readonly mails?: Mails
  readonly services?: (deps: FeatureDeps<Operations, Reads, Events, Mails>) => Services
  readonly commands?: (program: Command, withServices: WithServices<Services>) => void
}

type None = Readonly<Record<never, never>>

/** Declares a feature. Export it from the module whose URL it names, and add it to `src/features.ts`. */
export const defineFeature = <
  Operations extends Readonly<Record<string, FeatureOperation>> = None,
  Reads extends Readonly<Record<string, FeatureRead>> = None,
  Events extends EventSchemas = None,
  Mails extends MailKinds = None,
  Services extends object = None,
>(
  declaration: FeatureDeclaration<Operations, Reads, Events, Mails, Services>,
): Feature<Services> => declaration

type UnionToIntersection<Union> = (Union extends unknown ? (value: Union) => void : never) extends (
  value: infer Intersection,
) => void
  ? Intersection
  : never

/** The services of a list of features together. */
export type ServicesOf<Features extends readonly Feature[]> = Features extends readonly []
  ? None
  : UnionToIntersection<Features[number] extends Feature<infer Services> ? Services : never>

const NAME = /^[a-z][a-z0-9-]*$/
const EVENT = /^[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)+$/
const MIGRATION = /^\d{4}_[a-z0-9_]+$/
/** PostgreSQL cuts longer identifiers. */
const TABLE = /^[a-z][a-z0-9_]{0,62}$/
const COLUMN = /^[a-z_][a-z0-9_]{0,62}$/i
/** Tables of the engines, and of the migrations of the core. */
const RESERVED_TABLE = /^(pg_|sqlite_|kysely_)/

type Members = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const membersOf = (value: unknown): Members => (isObject(value) ? value : {})

/** Yields what is wrong with one declaration, as the end of a sentence. */
type Problems = Generator<string>

function* problemsOfTable(name: string, declaration: unknown): Problems {
  const { owner, key, updatedAt, cleanUp } = membersOf(declaration)
  if (!TABLE.test(name)) yield 'must be named like notes_shared'
  if (RESERVED_TABLE.test(name)) yield 'has a name that is reserved for the database'
  if (!owner) yield 'has no owner: name the column with the key of the user'
  if (!key) yield 'has no key: name the column of its primary key'
  const { column, after } = membersOf(cleanUp)
  if (cleanUp !== undefined && !(column && Number.isFinite(after)))
    yield 'has an incomplete cleanUp: name a column, and milliseconds after it'
  for (const value of [owner, key, updatedAt, column])
    if (value !== undefined && !(typeof value === 'string' && COLUMN.test(value)))
      yield `has a column that is not valid: ${JSON.stringify(value)}`
}

function* problemsOfMigration(name: string, migration: unknown): Problems {
  if (!MIGRATION.test(name)) yield 'must be named like 0001_notes'
  if (typeof membersOf(migration).up !== 'function') yield 'has no function up'
}

function* problemsOfFunction(_: string, value: unknown): Problems {
  if (typeof value !== 'function') yield 'is no function'
}

function* problemsOfEvent(name: string, schema: unknown): Problems {
  if (!EVENT.test(name)) yield 'must be named like note.created'
  if (!isObject(schema)) yield 'has no schema of its details'
}

function* problemsOfMail(_: string, mail: unknown): Problems {
  const { subject, body } = membersOf(mail)
  if (!subject || typeof body !== 'function') yield 'needs a subject and a function body'
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
}

function* problemsOfMembers({ kind, problems }: Part, members: unknown, owner: string): Problems {
  if (members === undefined) return
  if (!isObject(members)) return yield `The ${kind}s ${owner} must be an object`
  for (const [name, member] of Object.entries(members))
    for (const problem of problems(name, member)) yield `The ${kind} ${name} ${owner} ${problem}`
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
  for (const part of ['services', 'commands'])
    if (!['undefined', 'function'].includes(typeof feature[part]))
      yield `The ${part} ${owner} must be a function`
}

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

/** @throws {FeatureError} for the first declaration that is not valid, or that two features, or a feature and the core, share. */
export const checkFeatures = (features: readonly Feature[]): void => {
  for (const feature of features) for (const problem of problemsOf(feature)) throw new FeatureError(problem)
  const twice = features.find(({ name }, index) => features.findIndex(other => other.name === name) !== index)
  if (twice !== undefined) throw new FeatureError(`The feature ${twice.name} is declared twice`)
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
}

export interface FeatureServicesDeps {
  readonly stores: Readonly<Record<string, object>>
  readonly mails: MailSender<MailKinds>
  readonly users: Users
  readonly clock: () => number
  readonly logger: Pick<BaseLogger, 'error' | 'warn' | 'info'>
}

/** The services of one feature. */
export const createFeatureServices = (
  { name, services }: Feature,
  { stores, ...deps }: FeatureServicesDeps,
): object =>
  services?.({
    ...deps,
    store: stores[name] as AnyFeatureDeps['store'],
    newEvent(type: string, actor: Actor, userId: string, details: AuditEvent['details']): AuditEvent {
      const at = deps.clock()
      return { id: newId(at), at, type, actor, userId, details }
    },
  }) ?? {}

/** What the declaration of a feature is written with. */
export { type Actor, type AuditEvent, actingUser } from './audit-log/event.ts'
export { newId } from './ids.ts'
export type { MailSender, MailSite } from './mail/kinds.ts'
export type { MaybePromise } from './maybe-promise.ts'
export { type FeatureStore, table } from './storage/features.ts'
export { recordStatement } from './storage/operations/events.ts'
export {
  firstRow,
  type Query,
  query,
  rows,
  type Statement,
  type Steps,
  unlessTaken,
} from './storage/operations/operation.ts'
export { refusalOf } from './storage/operations/refusals.ts'
export { lockUser } from './storage/operations/user-locks.ts'
export { invalidates, invalidatesNothing, refusedFor, type Write } from './storage/operations/write.ts'
export type { User } from './users/user.ts'
