/**
 * A feature: a capability with its own data, declared once. Migrations, both engines, deletion with the user, clean-up, `copy`,
 * event types, mails, commands and `app.services` follow from the declaration. docs/extending.md builds one.
 */
import type { Static } from '@sinclair/typebox'
import type { Command } from 'commander'
import type { BaseLogger } from 'pino'
import { type Actor, type AuditEvent, EVENTS, type EventSchemas } from './audit-log/event.ts'
import { ADMIN_SCOPES, type ScopeDescriptions, USER_SCOPES } from './auth/scopes.ts'
import { newId } from './ids.ts'
import type { MailKinds, MailSender } from './mail/kinds.ts'
import type { FeatureOperation, FeatureRead, FeatureStore, StoredFeature } from './storage/stored-feature.ts'
import type { Users } from './users/users.ts'

/** The types of events of the core and of the features. */
export const eventSchemasOf = (features: readonly Feature[]): EventSchemas =>
  Object.assign({}, EVENTS, ...features.map(({ events }) => events))

/** The scopes of API keys: those of the core and of the features. */
export const userScopesOf = (features: readonly Feature[]): ScopeDescriptions =>
  Object.assign({}, USER_SCOPES, ...features.map(({ userScopes }) => userScopes))

/** The scopes of admin keys. */
export const adminScopesOf = (features: readonly Feature[]): ScopeDescriptions =>
  Object.assign({}, ADMIN_SCOPES, ...features.map(({ adminScopes }) => adminScopes))

type None = Readonly<Record<never, never>>

/** What features know of the configuration. */
export interface FeatureConfig {
  /** The base URL of the API: an origin, possibly with a path, without a slash at the end. */
  readonly publicUrl: string
  /** The web application of the users. */
  readonly webUrl: string
  /** The name of the product in mails. */
  readonly productName: string
  readonly isProduction: boolean
}

/** What the services of every feature get from the core. */
interface CoreDeps {
  readonly config: FeatureConfig
  readonly users: Users
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly logger: Pick<BaseLogger, 'error' | 'warn' | 'info'>
}

/** What the services of a feature are created with. */
export interface FeatureDeps<
  Operations extends Readonly<Record<string, FeatureOperation>> = None,
  Reads extends Readonly<Record<string, FeatureRead>> = None,
  Events extends EventSchemas = None,
  Mails extends MailKinds = None,
> extends CoreDeps {
  /** Calls the operations and reads of the feature. */
  readonly store: FeatureStore<Operations, Reads>
  /** Sends the mails of the feature. On the command line nothing is sent. */
  readonly mails: MailSender<Mails>
  /** Creates an event of the feature, now. An operation records it with `recordStatement`. */
  readonly newEvent: <Type extends keyof Events & string, UserId extends string | null>(
    type: Type,
    actor: Actor,
    /** `null` if it concerns no user. */
    userId: UserId,
    details: Static<Events[Type]>,
  ) => AuditEvent<UserId>
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

/** A function for each service. The names are known before anything is created. */
type ServiceFactories<Services, Deps> = {
  readonly [Name in keyof Services]: (deps: Deps) => Services[Name]
}

export interface Feature<Services extends object = object> extends StoredFeature {
  readonly events?: EventSchemas
  readonly mails?: MailKinds
  /** Scopes of API keys for private routes of the feature, with what each allows. */
  readonly userScopes?: ScopeDescriptions
  /** Scopes of admin keys for admin routes of the feature. */
  readonly adminScopes?: ScopeDescriptions
  /** Adds commands to the command line. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly commands?: (program: Command, withServices: WithServices<any>) => void
  /** Become part of `app.services`. */
  readonly services?: ServiceFactories<Services, AnyFeatureDeps>
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
  /** Scopes of API keys for private routes of the feature, with what each allows. */
  readonly userScopes?: ScopeDescriptions
  /** Scopes of admin keys for admin routes of the feature. */
  readonly adminScopes?: ScopeDescriptions
  readonly services?: ServiceFactories<Services, FeatureDeps<Operations, Reads, Events, Mails>>
  readonly commands?: (program: Command, withServices: WithServices<Services>) => void
}

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

export interface FeatureServicesDeps extends CoreDeps {
  /** By the name of the feature, see `Storage.features`. */
  readonly stores: Readonly<Record<string, object>>
  readonly mails: MailSender<MailKinds>
}

/** The services of one feature. */
export const createFeatureServices = (
  { name, services = {} }: Feature,
  { stores, ...coreDeps }: FeatureServicesDeps,
): object => {
  const deps: AnyFeatureDeps = {
    ...coreDeps,
    store: stores[name] as AnyFeatureDeps['store'],
    newEvent<UserId extends string | null>(
      type: string,
      actor: Actor,
      userId: UserId,
      details: AuditEvent['details'],
    ): AuditEvent<UserId> {
      const at = coreDeps.clock()
      return { id: newId(at), at, type, actor, userId, details }
    },
  }
  const factories = services as Readonly<Record<string, (deps: AnyFeatureDeps) => unknown>>
  return Object.fromEntries(Object.entries(factories).map(([service, create]) => [service, create(deps)]))
}

/** What the declaration of a feature is written with. */
export { type Actor, type AuditEvent, actingUser } from './audit-log/event.ts'
export { firstIdAt, newId } from './ids.ts'
export type { MailSender, MailSite } from './mail/kinds.ts'
export type { MaybePromise } from './maybe-promise.ts'
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
export { sessionExists } from './storage/operations/sessions.ts'
export { lockUser } from './storage/operations/user-locks.ts'
export { invalidates, invalidatesNothing, refusedFor, type Write } from './storage/operations/write.ts'
export { type FeatureStore, table } from './storage/stored-feature.ts'
export type { User } from './users/user.ts'
