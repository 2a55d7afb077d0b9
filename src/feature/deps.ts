/** What the service gives to a feature: `deps` of its services, jobs, consumers and guards. */
import type { Static } from '@sinclair/typebox'
import type { BaseLogger } from 'pino'
import type { DeferredWork } from '#base/concurrency/deferred-work'
import type { HttpClient, HttpClientOptions } from '#base/http-client/http-client'
import type { MaybePromise } from '#base/maybe-promise'
import type { Setting, SettingValues } from '#base/settings/readers'
import type { MetricRecorders } from '#base/statistics/feature-metrics'
import type { FeatureMetric } from '#base/statistics/metric'
import type { KeptValue } from '#base/statistics/snapshot'
import type { EmailAddresses } from '#core/accounts/email-addresses'
import type { SignIns } from '#core/accounts/sign-ins'
import type { Actor, AuditEvent, DetailsArgument, EventSchemas } from '#core/audit-log/event'
import type { AccessTokens } from '#core/auth/access-tokens'
import type { OpenCache } from '#core/auth/feature-caches'
import type { ScopeDescriptions } from '#core/auth/scopes'
import type { Sessions } from '#core/auth/sessions'
import type { Ed25519Signer } from '#core/auth/signing-keys'
import type { MailKinds, MailSender } from '#core/mail/kinds'
import type { LoginThrottle } from '#core/rate-limits/login-throttle'
import type { ReturnTargets } from '#core/return-targets/return-targets'
import type { EventLog } from '#core/store/store'
import type { User } from '#core/users/user'
import type { Users } from '#core/users/users'
import type { OpenRateLimit } from '#storage/rate-limit'
import type { FeatureOperation, FeatureRead, FeatureStore } from '#storage/stored-feature'
import type { Keyring } from './encryption/keyring.ts'

/** The members of a declaration from which the types of {@link FeatureDeps} follow. */
export interface Typed {
  readonly operations: Readonly<Record<string, FeatureOperation>>
  readonly reads: Readonly<Record<string, FeatureRead>>
  readonly events: EventSchemas
  readonly mails: MailKinds
  readonly settings: Readonly<Record<string, Setting>>
  readonly metrics: Readonly<Record<string, FeatureMetric>>
}

export type None = Readonly<Record<never, never>>

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
  /** Milliseconds without a request after which a session ends. */
  readonly sessionIdle: number
  /** Whether an account exists only once its e-mail is confirmed. */
  readonly requireEmailVerification: boolean
}

export type ClientTokens = Pick<
  AccessTokens,
  'issueToClient' | 'inspect' | 'audience' | 'isAccepted' | 'keyPairs' | 'seal'
>

/** The organizations of users, for features that know nothing else of them. */
export interface Memberships {
  /** Those that a user is a member of now, in the order of joining. */
  readonly list: (userId: string) => MaybePromise<readonly NamedOrganization[]>
  /** Returns `undefined` unless the user is a member of it now. */
  readonly find: (userId: string, id: string) => MaybePromise<NamedOrganization | undefined>
}

export interface NamedOrganization {
  readonly id: string
  readonly name: string
}

/** What features get from the core before there are use cases. The second factor is created with it. */
export interface BaseDeps {
  readonly config: FeatureConfig
  /** Further origins whose pages may use the cookie. */
  readonly allowedOrigins: readonly string[]
  /** Origins of apps that may use passkeys. */
  readonly nativeOrigins: readonly string[]
  /** The scopes of API keys, of the core and of all features. */
  readonly userScopes: ScopeDescriptions
  /** Now, in milliseconds since the epoch. */
  readonly clock: () => number
  readonly logger: Pick<BaseLogger, 'error' | 'warn' | 'info'>
  /** Encrypts secrets that the service reads again. Returns `null` without `ENCRYPTION_KEY` on PostgreSQL. */
  readonly keyring: () => Keyring | null
  /** Where a mailed link, or the callback of a provider, leads back to. */
  readonly returnTargets: ReturnTargets
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
  /** The path of a private key that the feature generates beside the SQLite file, by a name. Returns `null` on PostgreSQL. */
  readonly keyFile: (name: string) => string | null
  /** Issues and reads tokens of clients of the authorization server. Returns `null` on the command line. */
  readonly clientTokens: () => ClientTokens | null
  /** The organizations of users, of the feature that has them. Returns `null` without one, and on the command line. */
  readonly memberships: () => Memberships | null
  /** Runs work after the response, whose time does not reveal it then. */
  readonly deferred: Pick<DeferredWork, 'run'>
  /** Returns `undefined` if there is no such user; `users.get` throws then. */
  readonly findUser: (id: string) => MaybePromise<User | undefined>
  /** @param email in canonical form. Returns `undefined` if no user has it. */
  readonly findUserByEmail: (email: string) => MaybePromise<User | undefined>
}

/** What the services of every feature get from the core. */
export interface CoreDeps extends BaseDeps {
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
export type EarlyDeps<Deps extends CoreDeps> = Omit<Deps, Exclude<keyof CoreDeps, keyof BaseDeps>>

/**
 * What the services of a feature are created with.
 * @typeParam Declared the types of the declaration's members; {@link DepsOf} makes them from a declaration.
 */
export interface FeatureDeps<Declared extends Typed = { [Name in keyof Typed]: None }> extends CoreDeps {
  /** Calls the operations and reads of the feature: `await deps.store.addNote(note)`. */
  readonly store: FeatureStore<Declared['operations'], Declared['reads']>
  /** Sends the mails of the feature, after the response. On the command line nothing is sent. */
  readonly mails: MailSender<Declared['mails']>
  /** Creates an event of the feature, now. An operation records it with `recordStatement`. */
  readonly newEvent: <Type extends keyof Declared['events'] & string, UserId extends string | null>(
    type: Type,
    actor: Actor,
    /** `null` if it concerns no user. */
    userId: UserId,
    ...details: DetailsArgument<Static<Declared['events'][Type]>>
  ) => AuditEvent<UserId>
  /** The values of the feature's settings, by their names. */
  readonly settings: SettingValues<Declared['settings']>
  /** Counts and measures, by the names of the feature's metrics. On the command line nothing is counted. */
  readonly metrics: MetricRecorders<Declared['metrics']>
}

/**
 * {@link FeatureDeps} of the members of a declaration, for services that are classes. A member that is absent declares nothing.
 *
 *     const parts = { operations: { addNote }, settings: { NOTES_MAX: … } }
 *     class Notes { constructor(deps: DepsOf<typeof parts>) { … } }
 */
export type DepsOf<Parts> = FeatureDeps<{
  readonly [Name in keyof Typed]: Parts extends { readonly [Key in Name]: infer Members extends Typed[Name] }
    ? Members
    : None
}>

/** {@link FeatureDeps} of any feature: those of a list have different types. */
// biome-ignore lint/suspicious/noExplicitAny: `never` and `unknown` accept no declaration
export type AnyDeps = FeatureDeps<{ [Name in keyof Typed]: any }>

/** The names of {@link FeatureDeps}, whatever their types are. */
export type SomeDeps = CoreDeps & Record<Exclude<keyof FeatureDeps, keyof CoreDeps>, unknown>
