/**
 * A feature: a capability with its own data, declared once with {@link defineFeature}. Migrations, both engines, deletion with the user,
 * clean-up, `copy`, event types, mails, errors, settings, rate limits, metrics, routes, jobs, commands and `app.services` follow from the
 * declaration. docs/extending.md builds one. Hosts import this module as `gatehouse/feature`.
 */
import type { TProperties } from '@sinclair/typebox'
import type { Command } from 'commander'
import type { DeclaredError } from '#base/errors'
import type { MaybePromise } from '#base/maybe-promise'
import type { Setting } from '#base/settings/readers'
import type { FeatureMetric } from '#base/statistics/metric'
import type { AccountMethod } from '#core/accounts/account-methods'
import type { BulkFactor, BulkProperty } from '#core/accounts/bulk-factors'
import type { ProtectedRole } from '#core/accounts/protected-role'
import type { SecondFactor } from '#core/accounts/second-factor'
import type { SignInMethods } from '#core/accounts/sign-in-methods'
import type { EventSchemas } from '#core/audit-log/event'
import type { ScopeDescriptions } from '#core/auth/scopes'
import type { PublicKey } from '#core/auth/signing-keys'
import type { MailKinds } from '#core/mail/kinds'
import type { WindowLimit } from '#core/rate-limits/limits'
import type { AccountFeature } from '#core/store/account-feature'
import type { User } from '#core/users/user'
import type { ConsoleModule } from '#http/pages/console-parts'
import type { FeaturePages } from '#http/pages/feature-pages'
import type { ResourceMetadata } from '#http/request-authentication'
import type { RouteGuard } from '#http/route-guards'
import type { FeatureOperation, FeatureRead } from '#storage/stored-feature'
import type { Consumer } from './consumers/consumers.ts'
import type { AnyDeps, EarlyDeps, FeatureDeps, Memberships, None, SomeDeps, Typed } from './deps.ts'
import type { BackgroundTask } from './jobs/background-tasks.ts'
import type { Job } from './jobs/jobs.ts'

/** Options of the command line that select the store. */
export interface DatabaseOptions {
  /** A `DATABASE_URL` instead of the environment's. */
  readonly database?: string | undefined
}

/** Runs `use` with the services of the feature, on the store of the environment or of `--database`. */
export type WithServices<Services> = (
  options: DatabaseOptions,
  use: (services: Services) => Promise<void>,
) => Promise<void>

/** What the core and all features declare. */
export interface Declarations {
  readonly userScopes: ScopeDescriptions
  readonly adminScopes: ScopeDescriptions
  readonly eventTypes: readonly string[]
}

/**
 * Adds commands to the command line. Import what only commands need with `import()`: the service loads the declaration too.
 * @param program the command line. The commands of the core are already added.
 */
type AddCommands<Services> = (
  program: Command,
  withServices: WithServices<Services>,
  declared: Declarations,
) => void | Promise<void>

/** A function for each service. The names are known before anything is created. One that is not always needed can be imported. */
type ServiceFactories<Services, Deps> = {
  readonly [Name in keyof Services]: (deps: Deps) => MaybePromise<Services[Name]>
}

/** Imports and exports a factor with its users. */
interface BulkFactorDeclaration<Deps extends SomeDeps> {
  /**
   * `() => import('./credentials.ts')`, because only imports and exports need them.
   * @returns the schemas of properties of `credentials`.
   */
  readonly credentials: () => Promise<{ readonly default: TProperties }>
  readonly create: (deps: Pick<Deps, 'store' | 'keyring'>) => BulkFactor
}

/** A property of users in imports and exports, besides fields and credentials. */
interface BulkPropertyDeclaration<Deps extends SomeDeps> {
  /**
   * `() => import('./bulk-schema.ts')`, because only imports and exports need it.
   * @returns the property, optional, by its name.
   */
  readonly schema: () => Promise<{ readonly default: TProperties }>
  // biome-ignore lint/suspicious/noExplicitAny: values of any kind
  readonly create: (deps: Pick<Deps, 'store' | 'clock' | 'newEvent'>) => BulkProperty<any>
}

/** What the core's settings make possible. */
export interface ServiceAbilities {
  readonly sendsMails: boolean
  /** Whether there is a key that every instance has. */
  readonly encrypts: boolean
  /** Whether others can verify the tokens that the service signs: `JWT_ALGORITHM` is not HS256. */
  readonly signsForOthers: boolean
  /** Whether the store is SQLite, beside which keys are generated. */
  readonly isEmbedded: boolean
}

/**
 * The members of a declaration. All but `name` and `module` can be left out.
 * @typeParam Declared the types of the members from which those of `deps` follow.
 * @typeParam Services what the feature adds to `app.services`.
 */
interface Declaration<Declared extends Typed, Services extends object, Deps extends SomeDeps>
  extends AccountFeature {
  readonly operations?: Declared['operations']
  readonly reads?: Declared['reads']
  /**
   * Types of events by name, with the schema of their details: `{ 'note.created': Type.Object({ note: Type.String() }) }`. The audit log,
   * streams, webhooks and consumers have them as they have those of the core.
   */
  readonly events?: Declared['events']
  /** Texts of mails by kind. `deps.mails.send('noteAdded', user, values)` sends one. */
  readonly mails?: Declared['mails']
  /** Environment variables by name. Their values are `deps.settings`. */
  readonly settings?: Declared['settings']
  /**
   * Finds contradictions among settings, which stop the start.
   * @param settings those that are not valid are `undefined`; the start names them anyway.
   * @returns sentences.
   */
  readonly checkSettings?: (settings: Deps['settings'], service: ServiceAbilities) => readonly string[]
  /** What `defineErrors` returns. `throw new ServiceError(ERRORS.noteNotFound)` sends one. */
  readonly errors?: Readonly<Record<string, DeclaredError>>
  /** What `counter` and `gauge` return, by names such as `gatehouse_notes_added_total`. The numbers of workers become one. */
  readonly metrics?: Declared['metrics']
  /** Limits per client address: `config: { rateLimit: 'notes' }` of a route names one. */
  readonly rateLimits?: Readonly<Record<string, WindowLimit>>
  /** Scopes of API keys for private routes of the feature, with what each allows: `{ 'notes:read': 'Read your notes' }`. */
  readonly userScopes?: ScopeDescriptions
  /** Scopes of admin keys for admin routes of the feature, with what each allows. */
  readonly adminScopes?: ScopeDescriptions
  /**
   * A folder of routes with `public/`, `private/` and `admin/`, behind the gates of the core's folders with these names:
   * `new URL('routes/', import.meta.url)`.
   */
  readonly routes?: URL
  /** What private routes of every folder can require, by the property of their `config` that declares it. */
  readonly guards?: Readonly<Record<string, (deps: Deps) => RouteGuard>>
  /** The organizations of users, if the feature has them: those that tokens of clients can be limited to. One feature declares it. */
  readonly memberships?: (deps: Deps) => Memberships
  /** Where protected resources describe themselves (RFC 9728), for the challenges of 401 responses. One feature declares it. */
  readonly resourceMetadata?: (deps: Deps) => ResourceMetadata | null
  /** The public keys of tokens that the feature signs, for `/.well-known/jwks.json`. */
  readonly publicKeys?: (deps: Deps) => readonly PublicKey[]
  /**
   * What it adds to the hosted pages, or a function of the settings that returns it: `() => import('./pages.ts')`, because commands and
   * threads load the declaration too.
   */
  readonly pages?: () => Promise<{
    // biome-ignore lint/suspicious/noExplicitAny: the module types the settings that it uses
    readonly default: FeaturePages | ((settings: any) => FeaturePages)
  }>
  /** What it adds to the console: `() => import('./console-pages.ts')`, because only services with `CONSOLE=on` load it. */
  readonly console?: () => Promise<ConsoleModule>
  /** Use cases by name, which become part of `app.services`: `{ notes: deps => new Notes(deps) }`. */
  readonly services?: ServiceFactories<Services, Deps>
  readonly commands?: AddCommands<Services>
  /** Periodic work that one process of all runs, by name. */
  readonly jobs?: Readonly<Record<string, Job<Deps>>>
  /** Work by name that runs in every process, for as long as the service does. What one process is to do, it claims in the store. */
  readonly backgroundTasks?: Readonly<Record<string, BackgroundTask<Deps>>>
  /** Get every event of the audit log at least once, in order, in one process of all. Their names are those of their cursors. */
  readonly consumers?: Readonly<Record<string, Consumer<Deps>>>
  /** Ways to sign in, by their names, which sessions and events keep. */
  readonly signInMethods?: SignInMethods<Deps['settings']>
  /** The ways to sign in and the factors of a user that the feature has, for `GET /account/methods`. */
  readonly listMethods?: (deps: Deps, user: User) => MaybePromise<readonly AccountMethod[]>
  /** Verifies the codes that users send besides another proof of identity. One feature of a service has this member. */
  readonly secondFactor?: (deps: EarlyDeps<Deps>) => SecondFactor
  /** A role whose holders have admin scopes. Keys without these scopes neither give it, nor take over a user who has it. */
  readonly protectedRole?: (settings: Deps['settings']) => ProtectedRole | null
  /** Imports and exports the `factor` of the feature. */
  readonly bulkFactor?: BulkFactorDeclaration<Deps>
  readonly bulkProperty?: BulkPropertyDeclaration<Deps>
  /**
   * Called after a user was removed, with the `outcome` that `userRemoval` of the feature has returned, to mail those whom it concerns for
   * example. What it throws is logged.
   */
  readonly userRemoved?: (deps: EarlyDeps<Deps>, outcome: never) => MaybePromise<void>
}

/**
 * A feature as the service knows it; {@link defineFeature} returns one.
 * @typeParam Services what it adds to `app.services`.
 */
export interface Feature<
  Services extends object = object,
  Mails extends MailKinds = MailKinds,
  Settings extends Typed['settings'] = Typed['settings'],
> extends Declaration<
    Omit<Typed, 'mails' | 'settings'> & { mails: Mails; settings: Settings },
    Services,
    AnyDeps
  > {
  // biome-ignore lint/suspicious/noExplicitAny: the features of a list have different services
  readonly commands?: AddCommands<any>
}

/**
 * Declares a feature. Export it from the module whose URL it names, and add it to `src/features/own.ts`, or to `features` of a host.
 *
 *     export const notes = defineFeature({
 *       name: 'notes',
 *       module: import.meta.url,
 *       migrations: { '0001_notes': { up: (db, { text }) => … } },
 *       tables: { notes: table<NotesTable>({ owner: 'user_key', key: 'id' }) },
 *       operations: { addNote },
 *       services: { notes: deps => new Notes(deps) },
 *       routes: new URL('routes/', import.meta.url),
 *     })
 *
 * `checkFeatures` checks declarations when the service starts.
 */
export const defineFeature = <
  Operations extends Readonly<Record<string, FeatureOperation>> = None,
  Reads extends Readonly<Record<string, FeatureRead>> = None,
  Events extends EventSchemas = None,
  Mails extends MailKinds = None,
  Settings extends Readonly<Record<string, Setting>> = None,
  Metrics extends Readonly<Record<string, FeatureMetric>> = None,
  Services extends object = None,
>(
  declaration: DeclarationOf<
    {
      operations: Operations
      reads: Reads
      events: Events
      mails: Mails
      settings: Settings
      metrics: Metrics
    },
    Services
  >,
): Feature<Services, Mails, Settings> => declaration

type DeclarationOf<Declared extends Typed, Services extends object> = Declaration<
  Declared,
  Services,
  FeatureDeps<Declared>
>

/** One function for each feature, whose parameters a union of them intersects. */
type TakesServices<Each> = Each extends Feature<infer Services> ? (services: Services) => void : never

/** The services of a list of features together. */
export type ServicesOf<Features extends readonly Feature[]> = Features extends readonly []
  ? None
  : TakesServices<Features[number]> extends (services: infer Services) => void
    ? Services
    : never

/** One function for each feature, whose parameters a union of them intersects. Stored features have no mails. */
type TakesMails<Each> =
  Each extends Feature<infer _, infer Mails>
    ? 'mails' extends keyof Each
      ? (mails: Mails) => void
      : never
    : never

/** The kinds of mail of a list of features together. */
export type MailsOf<Features extends readonly Feature[]> =
  TakesMails<Features[number]> extends (mails: infer Mails extends MailKinds) => void ? Mails : never

/** Stored features have no settings. */
type SettingNames<Each> = Each extends { readonly settings?: infer Settings }
  ? Extract<keyof NonNullable<Settings>, string>
  : never

/** The names of the settings of a list of features. */
export type SettingNamesOf<Features extends readonly Feature[]> = SettingNames<Features[number]>

/**
 * What features of a host application add to `app.services` and `app.gatehouse.services`. The host declares it:
 *
 *     declare module 'gatehouse/feature' {
 *       interface HostServices extends ServicesOf<[typeof notes]> {}
 *     }
 */
// biome-ignore lint/suspicious/noEmptyInterface: hosts extend it, which they could not do with a type
export interface HostServices {}

/** What the declaration of a feature is written with. */
export { type DeclaredError, defineErrors, ServiceError } from '#base/errors'
export { firstIdAt, newId } from '#base/ids'
export type { MaybePromise } from '#base/maybe-promise'
export { cursorAt, idOfCursor, type Page, pageOf } from '#base/pagination'
export {
  duration,
  integer,
  oneOf,
  type Reader,
  SettingError,
  secret,
  serviceUrl,
  text,
} from '#base/settings/readers'
export { counter, gauge, kept } from '#base/statistics/metric'
export type { KeptValue } from '#base/statistics/snapshot'
export { newUser } from '#core/accounts/account-creation'
export type { AuthResult } from '#core/accounts/auth-result'
export type { BulkProperty } from '#core/accounts/bulk-factors'
export { addAccount } from '#core/accounts/stored-accounts'
export { type PendingChange, takePendingChange } from '#core/accounts/stored-pending-changes'
export { type Actor, type AuditEvent, actingUser, OPERATOR } from '#core/audit-log/event'
export type { LoggedEvent } from '#core/audit-log/event-feed'
export { consequenceOf, recordStatement, recordUnlessRevoked } from '#core/audit-log/stored-events'
export { actingSession } from '#core/auth/principal'
export type { SessionClient } from '#core/auth/session'
export {
  type ActingSession,
  beginChange,
  lockForSession,
  type ProvedSession,
  sessionExists,
} from '#core/auth/stored-sessions'
export type { MailSender, MailSite } from '#core/mail/kinds'
export { emailSubject } from '#core/rate-limits/login-throttle'
export type { RemovalPart, UserRemoval } from '#core/store/account-feature'
export { refusalOf } from '#core/users/refusals'
export type { User } from '#core/users/user'
export { lockUser } from '#core/users/user-locks'
export type { ConsoleParts } from '#http/pages/console-parts'
export type { FeaturePages } from '#http/pages/feature-pages'
export type { GuardedRequest, RouteGuard } from '#http/route-guards'
export type { FeatureDialect } from '#storage/migrations/session'
export {
  firstRow,
  type Query,
  query,
  rows,
  type Statement,
  type Steps,
  unlessTaken,
} from '#storage/operations/operation'
export {
  endsAccess,
  invalidates,
  invalidatesNothing,
  refusedFor,
  type Write,
} from '#storage/operations/write'
export { type FeatureMigration, type FeatureStore, type FeatureTable, table } from '#storage/stored-feature'
export type { Delivery } from './consumers/consumers.ts'
export type { DepsOf, FeatureConfig, FeatureDeps, Memberships } from './deps.ts'
export type { JobRun } from './jobs/jobs.ts'
export { hasLease } from './jobs/stored-jobs.ts'
