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
import {
  type FeatureOperation,
  type FeatureRead,
  type FeatureStore,
  type StoredFeature,
  tablesOf,
} from './storage/features.ts'
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
const TABLE = /^[a-z][a-z0-9_]*$/
const MIGRATION = /^\d{4}_[a-z0-9_]+$/

/** @returns the first name that occurs twice. */
const repeated = (names: readonly string[]): string | undefined =>
  names.find((name, index) => names.indexOf(name) !== index)

/** @returns a sentence for each name of the feature that is not valid. */
const invalidNamesOf = ({ name, migrations = {}, events = {}, ...feature }: Feature): string[] => [
  ...(NAME.test(name)
    ? []
    : [`The feature name ${JSON.stringify(name)} must be lower case, such as "notes"`]),
  ...Object.keys(migrations)
    .filter(migration => !MIGRATION.test(migration))
    .map(migration => `The migration ${migration} of the feature ${name} must be named like 0001_${name}`),
  ...Object.keys(events)
    .filter(event => !EVENT.test(event))
    .map(event => `The event ${event} of the feature ${name} must be named like note.created`),
  ...tablesOf([{ name, ...feature }]).flatMap(table => [
    ...(TABLE.test(table.name)
      ? []
      : [`The table ${table.name} of the feature ${name} must be named like notes_shared`]),
    ...(table.owner
      ? []
      : [
          `The table ${table.name} of the feature ${name} has no owner: name the column with the key of the user`,
        ]),
    ...(table.key
      ? []
      : [`The table ${table.name} of the feature ${name} has no key: name the column of its primary key`]),
  ]),
]

/** @throws {FeatureError} for the first declaration that is not valid, or that two features, or a feature and the core, share. */
export const checkFeatures = (features: readonly Feature[]): void => {
  const [invalid] = features.flatMap(invalidNamesOf)
  if (invalid !== undefined) throw new FeatureError(invalid)
  const all = (part: (feature: Feature) => object | undefined): string[] =>
    features.flatMap(feature => Object.keys(part(feature) ?? {}))
  const twice: readonly (readonly [string, string | undefined])[] = [
    ['feature', repeated(features.map(({ name }) => name))],
    ['table', repeated([...CORE_TABLES, ...all(({ tables }) => tables)])],
    ['event', repeated([...Object.keys(EVENTS), ...all(({ events }) => events)])],
    ['mail', repeated([...Object.keys(ACCOUNT_MAILS), ...all(({ mails }) => mails)])],
  ]
  for (const [kind, name] of twice)
    if (name !== undefined) throw new FeatureError(`The ${kind} ${name} is declared twice`)
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
