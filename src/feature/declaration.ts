/**
 * A feature: a capability with its own data, declared once. Migrations, both engines, deletion with the user, clean-up, `copy`,
 * event types, mails, errors, settings, rate limits, metrics, routes, jobs, commands and `app.services` follow from the declaration.
 * docs/extending.md builds one.
 */
import { type Static, type TProperties, Type } from '@sinclair/typebox'
import type { Command } from 'commander'
import type { BaseLogger } from 'pino'
import type { DeferredWork } from '#base/concurrency/deferred-work'
import { type DeclaredError, ServiceError } from '#base/errors'
import type { HttpClient, HttpClientOptions } from '#base/http-client/http-client'
import { newId } from '#base/ids'
import type { MaybePromise } from '#base/maybe-promise'
import type { Setting, SettingValues } from '#base/settings/readers'
import type { MetricRecorders } from '#base/statistics/feature-metrics'
import type { FeatureMetric } from '#base/statistics/metric'
import type { KeptValue } from '#base/statistics/snapshot'
import type { AccountMethod } from '#core/accounts/account-methods'
import type { BulkFactor, BulkProperty } from '#core/accounts/bulk-factors'
import type { EmailAddresses } from '#core/accounts/email-addresses'
import type { SecondFactor } from '#core/accounts/second-factor'
import { CORE_SIGN_IN_METHODS, type SignInMethods } from '#core/accounts/sign-in-methods'
import type { NamedSignInMethod, SignIns } from '#core/accounts/sign-ins'
import {
  type Actor,
  type AuditEvent,
  type DetailsArgument,
  EVENTS,
  type EventSchemas,
} from '#core/audit-log/event'
import type { OpenCache } from '#core/auth/feature-caches'
import { ADMIN_SCOPES, type ScopeDescriptions, USER_SCOPES } from '#core/auth/scopes'
import type { Sessions } from '#core/auth/sessions'
import type { Ed25519Signer } from '#core/auth/signing-keys'
import type { MailKinds, MailSender } from '#core/mail/kinds'
import type { WindowLimit } from '#core/rate-limits/limits'
import type { LoginThrottle } from '#core/rate-limits/login-throttle'
import type { AccountFeature } from '#core/store/account-feature'
import type { EventLog } from '#core/store/store'
import type { User } from '#core/users/user'
import type { FinishRemoval, Users } from '#core/users/users'
import type { ConsoleModule } from '#http/pages/console-parts'
import type { FeaturePages } from '#http/pages/feature-pages'
import type { RouteGuard } from '#http/route-guards'
import type { OpenRateLimit } from '#storage/rate-limit'
import type { FeatureOperation, FeatureRead, FeatureStore } from '#storage/stored-feature'
import type { Consumer, NamedConsumer } from './consumers/consumers.ts'
import type { Keyring } from './encryption/keyring.ts'
import type { BackgroundTask, NamedTask } from './jobs/background-tasks.ts'
import type { Job, ScheduledJob } from './jobs/jobs.ts'

/** The types of events of the core and of the features. */
export const eventSchemasOf = (features: readonly Feature[]): EventSchemas =>
  Object.assign({}, EVENTS, signInEvent(features), ...features.map(({ events }) => events))

/** `user.signed-in`, with the details of every method. */
const signInEvent = (features: readonly Feature[]) => {
  const methods = features.flatMap(({ signInMethods = {} }) => Object.values(signInMethods))
  const details: TProperties = Object.assign({}, ...methods.map(method => method.details))
  const properties = { ...EVENTS['user.signed-in'].properties, ...details }
  return { 'user.signed-in': Type.Object(properties) }
}

/** The scopes of API keys: those of the core and of the features. */
export const userScopesOf = (features: readonly Feature[]): ScopeDescriptions =>
  Object.assign({}, USER_SCOPES, ...features.map(({ userScopes }) => userScopes))

/** The scopes of admin keys. */
export const adminScopesOf = (features: readonly Feature[]): ScopeDescriptions =>
  Object.assign({}, ADMIN_SCOPES, ...features.map(({ adminScopes }) => adminScopes))

/** The settings of features. */
export const settingsOf = (features: readonly Feature[]): Readonly<Record<string, Setting>> =>
  Object.assign({}, ...features.map(({ settings }) => settings))

/** The metrics of features. */
export const metricsOf = (features: readonly Feature[]): Readonly<Record<string, FeatureMetric>> =>
  Object.assign({}, ...features.map(({ metrics }) => metrics))

/**
 * The sign-in methods of the core and of features.
 * @param settings the values of the settings of all features.
 */
export const signInMethodsOf = (
  features: readonly Feature[],
  settings: Readonly<Record<string, unknown>>,
): readonly NamedSignInMethod[] => [
  ...namedMethods(CORE_SIGN_IN_METHODS, null, settings),
  ...features.flatMap(({ name, signInMethods = {} }) => namedMethods(signInMethods, name, settings)),
]

const namedMethods = (
  methods: SignInMethods<AnySettings>,
  feature: string | null,
  settings: Readonly<Record<string, unknown>>,
): readonly NamedSignInMethod[] =>
  Object.entries(methods).map(([name, { isEnabled, rows, ...method }]) => ({
    ...method,
    name,
    feature,
    isEnabled: isEnabled?.(settings) ?? true,
    rows: rows?.(settings) ?? null,
  }))

/** What the factors of features have in imports and exports of users, by the name of the property of `credentials`. */
export const credentialSchemasOf = async (features: readonly Feature[]): Promise<TProperties> => {
  const modules = await Promise.all(features.map(({ bulkFactor }) => bulkFactor?.credentials()))
  return Object.assign({}, ...modules.map(module => module?.default))
}

/** The factors of features in imports and exports. */
export const bulkFactorsOf = (
  features: readonly Feature[],
  stores: FeatureServicesDeps['stores'],
  keyring: CoreDeps['keyring'],
): readonly BulkFactor[] =>
  features.flatMap(({ name, bulkFactor }) =>
    bulkFactor === undefined
      ? []
      : [bulkFactor.create({ store: stores[name] as AnyFeatureDeps['store'], keyring })],
  )

/** The properties that features add to users in imports and exports, each optional. */
export const bulkPropertySchemasOf = async (features: readonly Feature[]): Promise<TProperties> => {
  const modules = await Promise.all(features.map(({ bulkProperty }) => bulkProperty?.schema()))
  return Object.assign({}, ...modules.map(module => module?.default))
}

/** What features add to users in imports and exports. */
export const bulkPropertiesOf = (
  features: readonly Feature[],
  stores: FeatureServicesDeps['stores'],
  clock: CoreDeps['clock'],
): readonly BulkProperty[] =>
  features.flatMap(({ name, bulkProperty }) =>
    bulkProperty === undefined
      ? []
      : [
          bulkProperty.create({
            store: stores[name] as AnyFeatureDeps['store'],
            clock,
            newEvent: newEventAt(clock),
          }),
        ],
  )

/** The rate limits of features, per client address. */
export const rateLimitsOf = (features: readonly Feature[]): Readonly<Record<string, WindowLimit>> =>
  Object.assign({}, ...features.map(({ rateLimits }) => rateLimits))

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
  /** `EVENTS_KEPT` in milliseconds. */
  readonly eventsKept: number
  /** Whether an account exists only once its e-mail is confirmed. */
  readonly requireEmailVerification: boolean
}

/** What features get from the core before there are use cases. The second factor is created with it. */
interface BaseDeps {
  readonly config: FeatureConfig
  /** Further origins whose pages may use the cookie. */
  readonly allowedOrigins: readonly string[]
  /** Origins of apps that may use passkeys. */
  readonly nativeOrigins: readonly string[]
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly logger: Pick<BaseLogger, 'error' | 'warn' | 'info'>
  /** Encrypts secrets that the service reads again. Returns `null` without `ENCRYPTION_KEY` on PostgreSQL. */
  readonly keyring: () => Keyring | null
  /** Slows down attempts at guessing. */
  readonly loginThrottle: LoginThrottle
  /** Counters with a limit, for all processes together: of mails to one address, for example. `rateLimits` limits routes. */
  readonly openRateLimit: OpenRateLimit
  /**
   * Opens a cache of what the feature reads by the id of a user, or of an entity of its own: operations that change it return `invalidates`
   * with that id, and every instance evicts it.
   */
  readonly openCache: OpenCache
  /** Reads the audit log, in the order in which events become visible. */
  readonly eventLog: EventLog
  /** Opens a client for requests to other servers. It closes with the service. */
  readonly openHttpClient: (options: Omit<HttpClientOptions, 'resolve'>) => HttpClient
  /** Signs with the key of access tokens. Returns `null` unless it is an Ed25519 key, and on the command line. */
  readonly ed25519Signer: () => Ed25519Signer | null
  /** Runs work after the response, whose time does not reveal it then. */
  readonly deferred: Pick<DeferredWork, 'run'>
  /** Returns `undefined` if there is no such user; `users.get` throws then. */
  readonly findUser: (id: string) => MaybePromise<User | undefined>
  /** As `findUser`, by the e-mail in canonical form. */
  readonly findUserByEmail: (email: string) => MaybePromise<User | undefined>
}

/** What the services of every feature get from the core. */
interface CoreDeps extends BaseDeps {
  readonly users: Users
  readonly sessions: Sessions
  /** Finishes sign-ins of users whom a method of the feature has verified. */
  readonly signIns: Pick<SignIns, 'complete' | 'remove' | 'knownMethods'>
  /** Mails the link that confirms the e-mail of users, unless it is confirmed. On the command line nothing is mailed. */
  readonly emailAddresses: Pick<EmailAddresses, 'sendVerification'>
  /** The values of metrics whose history is kept, of this process; none on the command line. */
  readonly readKeptMetrics: () => Promise<readonly KeptValue[]>
}

/** {@link FeatureDeps} without what is created after the second factor. */
type EarlyDeps<Deps extends CoreDeps> = Omit<Deps, Exclude<keyof CoreDeps, keyof BaseDeps>>

/** What the services of a feature are created with. */
export interface FeatureDeps<
  Operations extends Readonly<Record<string, FeatureOperation>> = None,
  Reads extends Readonly<Record<string, FeatureRead>> = None,
  Events extends EventSchemas = None,
  Mails extends MailKinds = None,
  Settings extends Readonly<Record<string, Setting>> = None,
  Metrics extends Readonly<Record<string, FeatureMetric>> = None,
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
    ...details: DetailsArgument<Static<Events[Type]>>
  ) => AuditEvent<UserId>
  /** The values of the feature's settings. */
  readonly settings: SettingValues<Settings>
  /** Counts and measures. On the command line nothing is counted. */
  readonly metrics: MetricRecorders<Metrics>
}

type Part<Parts, Name extends string, Base> = Parts extends {
  readonly [Key in Name]: infer Members extends Base
}
  ? Members
  : None

/** {@link FeatureDeps} of a declaration: `type Deps = DepsOf<typeof parts>`, for services that are classes. */
export type DepsOf<Parts> = FeatureDeps<
  Part<Parts, 'operations', Readonly<Record<string, FeatureOperation>>>,
  Part<Parts, 'reads', Readonly<Record<string, FeatureRead>>>,
  Part<Parts, 'events', EventSchemas>,
  Part<Parts, 'mails', MailKinds>,
  Part<Parts, 'settings', Readonly<Record<string, Setting>>>,
  Part<Parts, 'metrics', Readonly<Record<string, FeatureMetric>>>
>

/** The features of a list have different dependencies; {@link defineFeature} types those of one. */
// biome-ignore lint/suspicious/noExplicitAny: `never` and `unknown` accept no declaration
type AnyFeatureDeps = FeatureDeps<any, any, any, any, any, any>

// biome-ignore lint/suspicious/noExplicitAny: as above
type AnySettings = any

/** Options of the command line that select the store. */
export interface DatabaseOptions {
  /** A `DATABASE_URL` in place of the environment's. */
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
  /** The types of events. */
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

/** A function for each service. The names are known before anything is created. */
type ServiceFactories<Services, Deps> = {
  readonly [Name in keyof Services]: (deps: Deps) => Services[Name]
}

/** The ways to sign in and the factors of a user that the feature has, for `GET /account/methods`. */
type ListMethods<Deps> = (deps: Deps, user: User) => MaybePromise<readonly AccountMethod[]>

/** Imports and exports a factor with its users. */
interface BulkFactorDeclaration<Deps extends Pick<AnyFeatureDeps, 'store' | 'keyring'>> {
  /**
   * `() => import('./credentials.ts')`, because only imports and exports need them.
   * @returns the schemas of properties of `credentials`.
   */
  readonly credentials: () => Promise<{ readonly default: TProperties }>
  readonly create: (deps: Pick<Deps, 'store' | 'keyring'>) => BulkFactor
}

/** A property of users in imports and exports, besides fields and credentials. */
interface BulkPropertyDeclaration<
  Deps extends { readonly store: unknown; readonly clock: unknown; readonly newEvent: unknown },
> {
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
}

/**
 * Finds contradictions among settings, which stop the start.
 * @param settings those that are not valid are `undefined`; the start names them anyway.
 * @returns sentences.
 */
type CheckSettings<Settings> = (settings: Settings, service: ServiceAbilities) => readonly string[]

/**
 * Called after a user was removed, with the `outcome` that `userRemoval` of the feature has returned, to mail those whom it concerns for
 * example.
 */
type UserRemoved<Deps> = (deps: Deps, outcome: never) => MaybePromise<void>

/** The parts that do not depend on each other. */
interface PlainParts extends AccountFeature {
  /** What `defineErrors` returns. */
  readonly errors?: Readonly<Record<string, DeclaredError>>
  /** Limits per client address: `config: { rateLimit: 'notes' }` of a route names one. */
  readonly rateLimits?: Readonly<Record<string, WindowLimit>>
  /** Scopes of API keys for private routes of the feature, with what each allows. */
  readonly userScopes?: ScopeDescriptions
  /** Scopes of admin keys for admin routes of the feature. */
  readonly adminScopes?: ScopeDescriptions
  /** A folder of routes with `public/`, `private/` and `admin/`, behind the same gates: `new URL('routes/', import.meta.url)`. */
  readonly routes?: URL
  /**
   * What it adds to the hosted pages, or a function of the settings that returns it: `() => import('./pages.ts')`, because commands and
   * threads load the declaration too.
   */
  readonly pages?: () => Promise<{
    readonly default: FeaturePages | ((settings: AnySettings) => FeaturePages)
  }>
  /** What it adds to the console: `() => import('./console-pages.ts')`, because only services with `CONSOLE=on` load it. */
  readonly console?: () => Promise<ConsoleModule>
}

type SettingsByName = Readonly<Record<string, Setting>>

export interface Feature<
  Services extends object = object,
  Mails extends MailKinds = MailKinds,
  Settings extends SettingsByName = SettingsByName,
> extends PlainParts {
  readonly events?: EventSchemas
  readonly mails?: Mails
  readonly settings?: Settings
  readonly metrics?: Readonly<Record<string, FeatureMetric>>
  /** Periodic work that one process of all runs. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly jobs?: Readonly<Record<string, Job<any>>>
  /** Work that runs in every process, for as long as the service does. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly backgroundTasks?: Readonly<Record<string, BackgroundTask<any>>>
  /** Get every event at least once, in order, in one process of all. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly consumers?: Readonly<Record<string, Consumer<any>>>
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly commands?: AddCommands<any>
  /** Become part of `app.services`. */
  readonly services?: ServiceFactories<Services, AnyFeatureDeps>
  readonly signInMethods?: SignInMethods<AnySettings>
  readonly checkSettings?: CheckSettings<AnySettings>
  readonly listMethods?: ListMethods<AnyFeatureDeps>
  readonly bulkFactor?: BulkFactorDeclaration<AnyFeatureDeps>
  readonly bulkProperty?: BulkPropertyDeclaration<AnyFeatureDeps>
  readonly secondFactor?: (deps: EarlyDeps<AnyFeatureDeps>) => SecondFactor
  readonly userRemoved?: UserRemoved<EarlyDeps<AnyFeatureDeps>>
  readonly guards?: Readonly<Record<string, (deps: AnyFeatureDeps) => RouteGuard>>
}

interface FeatureDeclaration<
  Operations extends Readonly<Record<string, FeatureOperation>>,
  Reads extends Readonly<Record<string, FeatureRead>>,
  Events extends EventSchemas,
  Mails extends MailKinds,
  Settings extends Readonly<Record<string, Setting>>,
  Metrics extends Readonly<Record<string, FeatureMetric>>,
  Services extends object,
> extends PlainParts {
  readonly operations?: Operations
  readonly reads?: Reads
  /** Types of events, with the schema of their details. */
  readonly events?: Events
  readonly mails?: Mails
  /** Environment variables. Their values are `deps.settings`. */
  readonly settings?: Settings
  readonly checkSettings?: CheckSettings<SettingValues<Settings>>
  /** Ways to sign in, by their names, which sessions and events keep. */
  readonly signInMethods?: SignInMethods<SettingValues<Settings>>
  /** What `counter` and `gauge` return, by names such as `gatehouse_notes_added_total`. The numbers of workers become one. */
  readonly metrics?: Metrics
  readonly services?: ServiceFactories<
    Services,
    FeatureDeps<Operations, Reads, Events, Mails, Settings, Metrics>
  >
  readonly listMethods?: ListMethods<FeatureDeps<Operations, Reads, Events, Mails, Settings, Metrics>>
  /** For a feature with a `factor`. */
  readonly bulkFactor?: BulkFactorDeclaration<
    FeatureDeps<Operations, Reads, Events, Mails, Settings, Metrics>
  >
  /** Adds a property to users in imports and exports. */
  readonly bulkProperty?: BulkPropertyDeclaration<
    FeatureDeps<Operations, Reads, Events, Mails, Settings, Metrics>
  >
  /** Verifies the codes that users send besides another proof of identity. One feature of a service has this part. */
  readonly secondFactor?: (
    deps: EarlyDeps<FeatureDeps<Operations, Reads, Events, Mails, Settings, Metrics>>,
  ) => SecondFactor
  /** For a feature with `userRemoval`. */
  readonly userRemoved?: UserRemoved<
    EarlyDeps<FeatureDeps<Operations, Reads, Events, Mails, Settings, Metrics>>
  >
  /** What private routes of every folder can require, by the property of their `config` that declares it. */
  readonly guards?: Readonly<
    Record<string, (deps: FeatureDeps<Operations, Reads, Events, Mails, Settings, Metrics>) => RouteGuard>
  >
  /** Periodic work that one process of all runs. */
  readonly jobs?: Readonly<
    Record<string, Job<FeatureDeps<Operations, Reads, Events, Mails, Settings, Metrics>>>
  >
  /** Work that runs in every process, for as long as the service does. What one process is to do, it claims in the store. */
  readonly backgroundTasks?: Readonly<
    Record<string, BackgroundTask<FeatureDeps<Operations, Reads, Events, Mails, Settings, Metrics>>>
  >
  /** Get every event of the audit log at least once, in order, in one process of all. */
  readonly consumers?: Readonly<
    Record<string, Consumer<FeatureDeps<Operations, Reads, Events, Mails, Settings, Metrics>>>
  >
  readonly commands?: AddCommands<Services>
}

/** Declares a feature. Export it from the module whose URL it names, and add it to `src/features/own.ts`. */
export const defineFeature = <
  Operations extends Readonly<Record<string, FeatureOperation>> = None,
  Reads extends Readonly<Record<string, FeatureRead>> = None,
  Events extends EventSchemas = None,
  Mails extends MailKinds = None,
  Settings extends Readonly<Record<string, Setting>> = None,
  Metrics extends Readonly<Record<string, FeatureMetric>> = None,
  Services extends object = None,
>(
  declaration: FeatureDeclaration<Operations, Reads, Events, Mails, Settings, Metrics, Services>,
): Feature<Services, Mails, Settings> => declaration

/** One function for each feature, whose parameters a union of them intersects. */
type TakesServices<Each> = Each extends Feature<infer Services> ? (services: Services) => void : never

/** The services of a list of features together. */
export type ServicesOf<Features extends readonly Feature[]> = Features extends readonly []
  ? None
  : TakesServices<Features[number]> extends (services: infer Services) => void
    ? Services
    : never

/** As {@link TakesServices}. Stored features have no mails. */
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

interface SharedDeps {
  /** By the name of the feature, see `Storage.features`. */
  readonly stores: Readonly<Record<string, object>>
  readonly mails: MailSender<MailKinds>
  /** The values of the settings of all features, by name. */
  readonly settings: Readonly<Record<string, unknown>>
  /** `FeatureMetrics.recorders` */
  readonly metrics: Readonly<Record<string, object>>
}

/** What the second factor is created with. */
export type EarlyFeatureDeps = BaseDeps & SharedDeps

export type FeatureServicesDeps = CoreDeps & SharedDeps

/** @returns a function that makes events, now. */
const newEventAt =
  (clock: () => number) =>
  <UserId extends string | null>(
    type: string,
    actor: Actor,
    userId: UserId,
    details: AuditEvent['details'] = null,
  ): AuditEvent<UserId> => {
    const at = clock()
    return { id: newId(at), at, type, actor, userId, details }
  }

/** @returns the dependencies of one feature. Parts of other features are in them too: names are unique. */
const depsOf = <Shared extends EarlyFeatureDeps>({ name }: Feature, { stores, ...shared }: Shared) => ({
  ...shared,
  metrics: shared.metrics as AnyFeatureDeps['metrics'],
  // A counter of the same name belongs to the core, a route, or another feature.
  openRateLimit: (options: Parameters<OpenRateLimit>[0]) =>
    shared.openRateLimit({ ...options, name: `${name}.${options.name}` }),
  store: stores[name] as AnyFeatureDeps['store'],
  newEvent: newEventAt(shared.clock),
})

/** @throws {Error} if no feature provides it. */
export const secondFactorOf = (features: readonly Feature[], shared: EarlyFeatureDeps): SecondFactor => {
  const provider = features.find(({ secondFactor }) => secondFactor !== undefined)
  const secondFactor = provider?.secondFactor?.(depsOf(provider, shared))
  if (secondFactor === undefined) throw new Error('No feature provides the second factor')
  return secondFactor
}

/** Tells features of a removal, by `userRemoved`. The removal is stored: what fails is logged. */
export const finishRemovalOf =
  (features: readonly Feature[], shared: EarlyFeatureDeps): FinishRemoval =>
  outcome => {
    if ('refusal' in outcome) throw new ServiceError(refusalErrorOf(features, outcome.refusal))
    for (const feature of features) {
      const of = outcome.outcomes[feature.name]
      if (of === undefined || feature.userRemoved === undefined) continue
      const told = async () => feature.userRemoved?.(depsOf(feature, shared), of as never)
      told().catch((err: unknown) =>
        shared.logger.error({ err, feature: feature.name }, 'a feature failed after the removal of a user'),
      )
    }
  }

/** @throws {Error} if no feature declares it: a bug. */
const refusalErrorOf = (features: readonly Feature[], name: string): DeclaredError => {
  const error = features.map(({ errors }) => errors?.[name]).find(each => each !== undefined)
  if (error === undefined) throw new Error(`No feature declares the error ${name}, which refuses a removal`)
  return error
}

/** The guards of features, by the property of `config` that declares them. */
export const routeGuardsOf = (
  features: readonly Feature[],
  shared: FeatureServicesDeps,
): Readonly<Record<string, RouteGuard>> =>
  Object.fromEntries(
    features.flatMap(feature =>
      Object.entries(feature.guards ?? {}).map(([name, create]) => [name, create(depsOf(feature, shared))]),
    ),
  )

/** The services of one feature. */
export const createFeatureServices = (feature: Feature, shared: FeatureServicesDeps): object => {
  const deps = depsOf(feature, shared)
  const factories = (feature.services ?? {}) as Readonly<Record<string, (deps: AnyFeatureDeps) => unknown>>
  return Object.fromEntries(Object.entries(factories).map(([service, create]) => [service, create(deps)]))
}

/** The functions that list the methods of users, of all features. */
export const methodListsOf = (features: readonly Feature[], shared: FeatureServicesDeps) =>
  features.flatMap(feature => {
    const { listMethods } = feature
    return listMethods === undefined ? [] : [(user: User) => listMethods(depsOf(feature, shared), user)]
  })

/** The jobs of one feature. */
export const jobsOf = (feature: Feature, shared: FeatureServicesDeps): readonly ScheduledJob[] => {
  const deps = depsOf(feature, shared)
  return Object.entries(feature.jobs ?? {}).map(([name, { every, run }]) => ({
    name: `${feature.name}.${name}`,
    every,
    run: jobRun => run(deps, jobRun),
  }))
}

/** The background tasks of one feature. */
export const backgroundTasksOf = (feature: Feature, shared: FeatureServicesDeps): readonly NamedTask[] => {
  const deps = depsOf(feature, shared)
  return Object.entries(feature.backgroundTasks ?? {}).map(([name, run]) => ({
    name: `${feature.name}.${name}`,
    run: signal => run(deps, signal),
  }))
}

/** The consumers of one feature. */
export const consumersOf = (feature: Feature, shared: FeatureServicesDeps): readonly NamedConsumer[] => {
  const deps = depsOf(feature, shared)
  return Object.entries(feature.consumers ?? {}).map(([name, { types, handle }]) => ({
    name: `${feature.name}.${name}`,
    types: types ?? null,
    handle: (event, delivery) => handle(deps, event, delivery),
  }))
}

export { defineErrors, ServiceError } from '#base/errors'
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
/** What the declaration of a feature is written with. */
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
export {
  firstRow,
  type Query,
  query,
  rows,
  type Statement,
  type Steps,
  unlessTaken,
} from '#storage/operations/operation'
export { invalidates, invalidatesNothing, refusedFor, type Write } from '#storage/operations/write'
export { type FeatureStore, table } from '#storage/stored-feature'
export type { Delivery } from './consumers/consumers.ts'
export type { JobRun } from './jobs/jobs.ts'
export { hasLease } from './jobs/stored-jobs.ts'
