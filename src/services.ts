/** The composition root: creates every service. Plugins and routes find them as `app.services`. */
import type { BaseLogger } from 'pino'
import { DeferredWork } from '#base/concurrency/deferred-work'
import { Sampler } from '#base/concurrency/sampler'
import type { ResolveHost } from '#base/http-client/public-addresses'
import { FeatureMetrics } from '#base/statistics/feature-metrics'
import { checkFilesOf } from '#base/text-files'
import { Languages } from '#base/texts'
import { AccountMethods } from '#core/accounts/account-methods'
import { AGING_TABLES, CleanUp, type CleanUpPace } from '#core/accounts/clean-up'
import { EmailAddresses } from '#core/accounts/email-addresses'
import { Impersonation } from '#core/accounts/impersonation'
import { ACCOUNT_MAILS } from '#core/accounts/mails'
import { PasswordChanges } from '#core/accounts/password-changes'
import { PasswordResets } from '#core/accounts/password-resets'
import { PasswordSignIns } from '#core/accounts/password-sign-ins'
import { Reauthentication } from '#core/accounts/reauthentication'
import type { SecondFactor } from '#core/accounts/second-factor'
import { SignIns } from '#core/accounts/sign-ins'
import { SignUps } from '#core/accounts/sign-ups'
import { EventFeed, type EventHandler } from '#core/audit-log/event-feed'
import { type EventStreamLimits, EventStreams } from '#core/audit-log/event-streams'
import { AccessTokens } from '#core/auth/access-tokens'
import { AdminAuthenticator } from '#core/auth/admin-authenticator'
import { Authenticator } from '#core/auth/authenticator'
import { ClientAuthenticator } from '#core/auth/client-authenticator'
import { Proofs } from '#core/auth/dpop'
import { FeatureCaches } from '#core/auth/feature-caches'
import { InvalidationJournal } from '#core/auth/invalidation-journal'
import { withInvalidationLog } from '#core/auth/invalidation-log'
import { LastRequests } from '#core/auth/last-requests'
import { featureKeyFileOf } from '#core/auth/secret-file'
import { UserCache } from '#core/auth/user-cache'
import { EmailConfirmations } from '#core/email-confirmation/email-confirmations'
import { PendingSignUps } from '#core/email-confirmation/pending-sign-ups'
import {
  type PendingSignUpStore,
  storedPendingSignUps,
} from '#core/email-confirmation/stored-pending-sign-ups'
import { composerDepsOf } from '#core/mail/composer'
import type { MailSender, MailTemplates } from '#core/mail/kinds'
import { Mailer, NO_MAILS } from '#core/mail/mailer'
import { RateLimitedMailer } from '#core/mail/rate-limited-mailer'
import { checkTemplateFiles } from '#core/mail/template-files'
import { TestMails } from '#core/mail/test-mails'
import { BreachedPasswords } from '#core/passwords/breached-passwords'
import { hasherLimits, type PasswordHasher, PooledPasswordHasher } from '#core/passwords/hasher'
import { KnownNetworks } from '#core/rate-limits/known-networks'
import { RATE_LIMITS, type RateLimits, WRITE_LIMIT } from '#core/rate-limits/limits'
import { noLoginThrottle, StoredLoginThrottle } from '#core/rate-limits/login-throttle'
import { ThrottleEvents } from '#core/rate-limits/throttle-events'
import type { ReturnTargets } from '#core/return-targets/return-targets'
import type { Storage } from '#core/store/store'
import { withUserCache } from '#core/store/with-user-cache'
import type { FinishRemoval } from '#core/users/users'
import {
  adminScopesOf,
  backgroundTasksOf,
  consumersOf,
  createFeatureServices,
  eventSchemasOf,
  type FeatureServicesDeps,
  finishRemovalOf,
  jobsOf,
  membershipsOf,
  methodListsOf,
  metricsOf,
  protectedRoleOf,
  publicKeysOf,
  rateLimitsOf,
  resourceMetadataOf,
  routeGuardsOf,
  secondFactorOf,
  signInMethodsOf,
  userScopesOf,
} from '#feature/assembly'
import { assertUnique } from '#feature/checks'
import { Consumers, type HostConsumer } from '#feature/consumers/consumers'
import { type ConsumerStore, storedConsumers } from '#feature/consumers/stored-consumers'
import type { Feature } from '#feature/declaration'
import { Keyring } from '#feature/encryption/keyring'
import { BackgroundTasks } from '#feature/jobs/background-tasks'
import { type JobPace, Jobs } from '#feature/jobs/jobs'
import { type JobStore, storedJobs } from '#feature/jobs/stored-jobs'
import { createFeatureDeps, createStoreServices } from '#feature/store-services'
import { mailKindsOf } from '#feature/texts'
import type { BuiltInMails, FeatureServices } from '#features/built-in'
import type { Config } from '#process/config/config'
import { METRICS } from '#process/metrics/declarations'
import { Metrics } from '#process/metrics/metrics'
import type { WorkerChannel } from '#process/metrics/worker-metrics'
import { SHUTDOWN } from '#process/shutdown'
import { StatusReport } from '#process/status-report'
import { allListeners } from '#storage/invalidation'
import { tablesOf } from '#storage/stored-feature'

/** Replacements for parts that the configuration would create. */
export interface ServiceOptions {
  /** Milliseconds since the epoch. */
  readonly clock?: (() => number) | undefined
  /** Default: a pool of hashing threads. */
  readonly hasher?: PasswordHasher | undefined
  /** Default: {@link RATE_LIMITS}. Ignored with `RATE_LIMIT=off`. */
  readonly rateLimits?: RateLimits | undefined
  readonly eventStreamLimits?: EventStreamLimits | undefined
  readonly cleanUpPace?: CleanUpPace | undefined
  readonly jobPace?: JobPace | undefined
  /** Milliseconds until requested mails, and events of the login throttle, at most. */
  readonly maxDeferral?: number | undefined
  /** Called for every event of the audit log, see {@link EventFeed}; with a name, as a consumer. */
  readonly onEvent?: EventHandler | HostConsumer | undefined
  /** Milliseconds until the first repetition for a consumer that failed. */
  readonly consumerBackOff?: number | undefined
  /** Finds the addresses of hosts that the service sends requests to. Default: the resolver of the machine. */
  readonly resolveHost?: ResolveHost | undefined
  /** Replace the texts of mails. */
  readonly mailTemplates?: MailTemplates<BuiltInMails> | undefined
  /** In a worker, whose primary serves the metrics. */
  readonly workerChannel?: WorkerChannel | undefined
}

export interface ServicesDeps extends ServiceOptions {
  readonly storage: Storage
  /** Every feature of the service, from `allFeatures`. */
  readonly features: readonly Feature[]
  /** For what no request reports: failures of background work, and what the operator should know. */
  readonly logger: Pick<BaseLogger, 'error' | 'warn' | 'info'>
}

/** Warns of a failure that is repeated by every request: once a minute. */
const sampledWarning = (logger: ServicesDeps['logger'], clock: () => number, message: string) => {
  const sampler = new Sampler(clock)
  return (err: unknown): void => {
    const suppressed = sampler.take(message, '')
    if (suppressed !== null) logger.warn({ err, suppressed }, message)
  }
}

const createFoundation = (config: Config, { storage, features, logger, ...deps }: ServicesDeps) => {
  const { clock = Date.now } = deps
  const logFailure = (message: string) => (err: unknown) => logger.error({ err }, message)
  const userCache = new UserCache()
  return {
    config,
    features,
    languages: new Languages(config.texts?.languages),
    clock,
    logger,
    logFailure,
    userCache,
    storage: withUserCache(storage, userCache),
    /** The stores of the built-in features. */
    stores: {
      pendingSignUps: storage.features[storedPendingSignUps.name] as PendingSignUpStore,
      jobs: storage.features[storedJobs.name] as JobStore,
      consumers: storage.features[storedConsumers.name] as ConsumerStore,
    },
    tokens: AccessTokens.from(config),
    keyring: Keyring.from(config),
    /** The lifetime and idle limit of sessions, in milliseconds. */
    limits: { lifetime: config.sessionLifetime, idle: config.sessionIdle },
    hasher:
      deps.hasher ??
      new PooledPasswordHasher(logFailure('a hashing thread could not start'), hasherLimits(config.workers)),
    breachedPasswords: new BreachedPasswords(
      config.breachedPasswordsUrl,
      sampledWarning(logger, clock, 'new passwords are accepted without a comparison with breached ones'),
    ),
  }
}

type Foundation = ReturnType<typeof createFoundation>

/** Authenticates requests, with caches of tokens and keys, and notes last requests. */
const createAuthentication = (foundation: Foundation) => {
  const { config, clock, logger, logFailure, userCache, storage, tokens, limits } = foundation
  const { sessions, deliverInvalidations } = storage
  const lastRequests = new LastRequests({
    userCache,
    store: storage.lastRequests,
    apiKeys: storage.apiKeys,
    adminKeys: storage.adminKeys,
    interval: config.lastRequestInterval,
    idle: config.sessionIdle,
    closing: SHUTDOWN.lastRequests,
    onFailure: logFailure('last requests could not be written, the next batch includes them'),
  })
  const authenticator = new Authenticator({
    tokens,
    sessions,
    apiKeys: storage.apiKeys,
    grants: storage.grants,
    userCache,
    lastRequests,
    limits,
    deliverInvalidations,
    clock,
    capacity: config.cacheSize,
  })
  const adminAuthenticator = new AdminAuthenticator({
    rootKeys: config.adminKeys,
    adminKeys: storage.adminKeys,
    tokens,
    clients: storage.clients,
    lastRequests,
    deliverInvalidations,
    clock,
  })
  const featureCaches = new FeatureCaches({ deliverInvalidations })
  const invalidationJournal = new InvalidationJournal({ deliverInvalidations })
  const caches = allListeners([authenticator, adminAuthenticator, featureCaches, invalidationJournal])
  storage.subscribe(withInvalidationLog(caches, logger, clock))
  lastRequests.start()
  const proofs = new Proofs({ seal: tokens.seal, clock })
  const clientAuthenticator = new ClientAuthenticator({
    ...{ tokens, clients: storage.clients, openCache: featureCaches.open, clock },
  })
  return {
    authenticator,
    adminAuthenticator,
    clientAuthenticator,
    featureCaches,
    invalidationJournal,
    lastRequests,
    proofs,
  }
}

/** The limits on requests and on attempts to sign in. */
const createRateLimits = (
  { config, features, clock, logFailure, storage }: Foundation,
  { rateLimits: given, maxDeferral }: ServicesDeps,
) => {
  const { users, sessions, events, openRateLimit } = storage
  const limits = given ?? RATE_LIMITS
  const perAddress = { ...rateLimitsOf(features), ...limits.perAddress }
  const rateLimits = config.isRateLimited ? { ...limits, perAddress } : null
  const deferred = new DeferredWork(logFailure('an event of the audit log was dropped'), maxDeferral)
  const throttleEvents = new ThrottleEvents({ users, events, openRateLimit, deferred, clock })
  const loginThrottle =
    rateLimits === null
      ? noLoginThrottle
      : new StoredLoginThrottle(
          openRateLimit,
          rateLimits.loginThrottle,
          new KnownNetworks({ users, sessions, clock }),
          (subject, seconds) => throttleEvents.record(subject, seconds),
        )
  return {
    rateLimits,
    /** The names of the limits per address. */
    rateLimitNames: Object.keys(perAddress),
    loginThrottle,
    throttleEvents,
    close: () => deferred.close(),
  }
}

type RateLimiting = ReturnType<typeof createRateLimits>

/** The mails of accounts and features, with the limit for each recipient. */
const createMails = (
  { config, features, languages, logger, logFailure, storage }: Foundation,
  { rateLimits }: RateLimiting,
  { mailTemplates: templates, maxDeferral }: ServicesDeps,
) => {
  const { mail } = config
  const mailerDeps = {
    ...composerDepsOf(config),
    mail,
    templates,
    templateFiles: mail.templates,
    log: logger,
    closing: SHUTDOWN.mails,
    languages,
  }
  const kinds = mailKindsOf(features)
  const mailer = mail.url === 'off' ? null : new Mailer(kinds, mailerDeps)
  const unlimited: MailSender<typeof kinds> = mailer ?? NO_MAILS
  const limited =
    rateLimits === null
      ? null
      : new RateLimitedMailer({
          kinds,
          mails: unlimited,
          openRateLimit: storage.openRateLimit,
          limit: rateLimits.perRecipient,
          onDropped: () => logger.warn('a mail was not sent: its recipient reached the limit'),
        })
  const mails: MailSender<typeof kinds> = limited ?? unlimited
  const limit = rateLimits?.perRecipient ?? null
  return {
    mails,
    mailer,
    testMails: new TestMails({ kinds, mailer, openRateLimit: storage.openRateLimit, limit }),
    /** Makes the mails that were requested. */
    deferred: new DeferredWork(logFailure('a requested mail was dropped'), maxDeferral),
    async close(): Promise<void> {
      await limited?.counted()
      await mailer?.close()
    },
  }
}

type Mailing = ReturnType<typeof createMails>

/** The use cases of users, administrators and the operator. */
const createAccounts = (
  {
    config,
    features,
    clock,
    logger,
    storage,
    stores,
    tokens,
    keyring,
    limits,
    hasher,
    breachedPasswords,
  }: Foundation,
  { loginThrottle }: RateLimiting,
  { mails, deferred }: Mailing,
  secondFactor: SecondFactor,
  finishRemoval: FinishRemoval,
  returnTargets: ReturnTargets,
) => {
  const { users, sessions, emailTokens, events, adminKeys, accounts: accountStore } = storage
  const shared = {
    users,
    sessions,
    emailTokens,
    events,
    accountStore,
    adminKeys,
    tokens,
    hasher,
    breachedPasswords,
    limits,
    clock,
    logger,
    loginThrottle,
    mails,
    deferred,
    secondFactor,
    finishRemoval,
    returnTargets,
    requireEmailVerification: config.requireEmailVerification,
    protectedRole: protectedRoleOf(features, config.featureSettings),
  }
  const deps = {
    ...shared,
    signIns: new SignIns({ ...shared, methods: signInMethodsOf(features, config.featureSettings) }),
    reauthentication: new Reauthentication(shared),
  }
  const { signIns, reauthentication } = deps
  const pendingSignUps = new PendingSignUps({ ...deps, store: stores.pendingSignUps })
  return {
    signUps: new SignUps({
      ...deps,
      pendingSignUps: config.requireEmailVerification ? pendingSignUps : null,
    }),
    signIns,
    passwordSignIns: new PasswordSignIns(deps),
    reauthentication,
    emailAddresses: new EmailAddresses(deps),
    emailConfirmations: new EmailConfirmations({ ...deps, pendingSignUps }),
    passwordChanges: new PasswordChanges(deps),
    passwordResets: new PasswordResets(deps),
    impersonation: new Impersonation(deps),
    ...createStoreServices({
      ...deps,
      storage,
      features,
      featureSettings: config.featureSettings,
      keyring: () => keyring,
    }),
  }
}

/** Removes expired rows, and runs the jobs, consumers and background tasks of features, from now on. */
const startBackgroundWork = (
  { config, features, clock, logger, logFailure, storage, stores }: Foundation,
  deps: FeatureServicesDeps,
  { onEvent, consumerBackOff, cleanUpPace, jobPace }: ServicesDeps,
) => {
  const cleanUp = new CleanUp({
    store: storage.cleanUp,
    openRateLimit: storage.openRateLimit,
    idle: config.sessionIdle,
    eventsKept: config.eventsKept,
    tables: [...AGING_TABLES, ...tablesOf(features)],
    clock,
    onFailure: logFailure('expired rows could not be removed, the next pass continues'),
    pace: cleanUpPace,
  })
  const ofHost = typeof onEvent === 'object' ? [{ ...onEvent, name: `host.${onEvent.name}` }] : []
  const consumers = new Consumers({
    consumers: [...features.flatMap(feature => consumersOf(feature, deps)), ...ofHost],
    store: stores.consumers,
    events: storage.events,
    clock,
    onFailure: (consumer, { id, type }, err) =>
      logger.error({ err, consumer, event: id, type }, 'a consumer failed for an event, which is repeated'),
    onStoreFailure: sampledWarning(logger, clock, 'the audit log could not be read, consumers wait'),
    backOff: consumerBackOff,
  })
  const jobs = new Jobs({
    jobs: [...features.flatMap(feature => jobsOf(feature, deps)), ...consumers.jobs],
    store: stores.jobs,
    clock,
    onFailure: (job, err) => logger.error({ err, job }, 'a job failed, it is repeated'),
    onStoreFailure: sampledWarning(logger, clock, 'the leases of jobs could not be read, jobs wait'),
    closing: SHUTDOWN.jobs,
    pace: jobPace,
  })
  const tasks = new BackgroundTasks({
    tasks: features.flatMap(feature => backgroundTasksOf(feature, deps)),
    onFailure: (task, err) => logger.error({ err, task }, 'a background task failed, it starts again'),
    closing: SHUTDOWN.jobs,
  })
  cleanUp.start()
  jobs.start()
  tasks.start()
  return { consumers, jobs, close: () => Promise.all([cleanUp.close(), jobs.close(), tasks.close()]) }
}

/**
 * Called before the store is opened.
 * @throws {FeatureError} for a mail or metric of a feature whose name the core or another feature uses. {ConfigError} for a file of
 * `MAIL_TEMPLATES` that does not suit its kind.
 */
export const checkMailsAndMetrics = (features: readonly Feature[], config: Config): void => {
  assertUnique('mail', Object.keys(ACCOUNT_MAILS), features, ({ mails = {} }) => Object.keys(mails))
  assertUnique('metric', Object.keys(METRICS), features, ({ metrics = {} }) => Object.keys(metrics))
  const { templates } = config.mail
  if (templates === null) return
  const { brand } = composerDepsOf(config)
  checkFilesOf('MAIL_TEMPLATES', () => checkTemplateFiles(templates, mailKindsOf(features), brand))
}

/** Creates the parts, each from those that it depends on. */
const createCoreServices = (config: Config, deps: ServicesDeps) => {
  const foundation = createFoundation(config, deps)
  const { features, clock, logger, storage, tokens, keyring, hasher, breachedPasswords } = foundation
  const { sessions, users } = storage
  const {
    authenticator,
    adminAuthenticator,
    clientAuthenticator,
    featureCaches,
    invalidationJournal,
    lastRequests,
    proofs,
  } = createAuthentication(foundation)
  const rateLimiting = createRateLimits(foundation, deps)
  const mailing = createMails(foundation, rateLimiting, deps)
  const { throttleEvents, rateLimits, rateLimitNames, loginThrottle } = rateLimiting
  const { mails, mailer, deferred } = mailing
  const featureMetrics = new FeatureMetrics(metricsOf(features), metric =>
    logger.warn(
      { metric },
      'a metric has too many combinations of label values: further ones count as other',
    ),
  )
  const { deps: earlyDeps, close: closeClients } = createFeatureDeps(
    config,
    storage,
    {
      clock,
      logger,
      loginThrottle,
      mails,
      deferred,
      keyring: () => keyring,
      openCache: featureCaches.open,
      ed25519Signer: () => tokens.ed25519Signer,
      clientTokens: () => tokens,
      memberships: () => membershipsOf(features, featureDeps),
      keyFile: name =>
        config.storage.engine === 'sqlite' ? featureKeyFileOf(config.storage.file, name) : null,
      userScopes: userScopesOf(features),
      settings: config.featureSettings,
      metrics: featureMetrics.recorders,
    },
    deps.resolveHost,
  )
  const secondFactor = secondFactorOf(features, earlyDeps)
  const finishRemoval = finishRemovalOf(features, earlyDeps)
  const { returnTargets } = earlyDeps
  const accounts = createAccounts(
    foundation,
    rateLimiting,
    mailing,
    secondFactor,
    finishRemoval,
    returnTargets,
  )
  const { onEvent } = deps
  const eventFeed =
    typeof onEvent !== 'function'
      ? null
      : new EventFeed({
          store: storage.events,
          handler: onEvent,
          onFailure: (err, message) => logger.error({ err }, message),
        })

  const { signUps, signIns } = accounts
  const featureDeps: FeatureServicesDeps = {
    ...earlyDeps,
    users: accounts.users,
    sessions: accounts.sessions,
    signIns,
    emailAddresses: accounts.emailAddresses,
    // They are created with what features do.
    readKeptMetrics: () => metrics.collectKept(),
  }
  const background = startBackgroundWork(foundation, featureDeps, deps)
  const { consumers, jobs } = background
  const metrics: Metrics = new Metrics({
    declarations: { ...METRICS, ...metricsOf(features) },
    featureMetrics,
    jobs,
    consumers,
    signUps,
    signIns,
    throttleEvents,
    hasher,
    breachedPasswords,
    authenticator,
    lastRequests,
    storage,
    mailer,
    limits: [...rateLimitNames, WRITE_LIMIT],
    workerChannel: deps.workerChannel,
  })
  const onFailure = sampledWarning(logger, clock, 'the audit log could not be read, event streams wait')
  const streamDeps = { auditLog: accounts.auditLog, eventLog: storage.events, onFailure }
  const eventStreams = new EventStreams(streamDeps, deps.eventStreamLimits)

  return {
    ...accounts,
    languages: foundation.languages,
    accountMethods: new AccountMethods({ sessions, signIns, lists: methodListsOf(features, featureDeps) }),
    authenticator,
    adminAuthenticator,
    clientAuthenticator,
    invalidationJournal,
    proofs,
    /** `null`: there is none. */
    protectedRole: protectedRoleOf(features, config.featureSettings),
    /** The public keys of tokens. */
    jwks: [...tokens.publicKeys, ...publicKeysOf(features, featureDeps)],
    features,
    /** Every type of event. */
    eventSchemas: eventSchemasOf(features),
    userScopes: userScopesOf(features),
    adminScopes: adminScopesOf(features),
    returnTargets,
    routeGuards: routeGuardsOf(features, featureDeps),
    /** `null`: there is no authorization server. */
    resourceMetadata: resourceMetadataOf(features, featureDeps),
    mails,
    testMails: mailing.testMails,
    metrics,
    storage,
    status: new StatusReport({ config, authenticator, users, storage }),
    /** `null` without a handler of events. */
    eventFeed,
    consumers,
    eventStreams,
    /** `null` with `RATE_LIMIT=off`. */
    rateLimits,
    rateLimitNames,
    /** What the services of features are created with. */
    featureDeps,
    /** Milliseconds since the epoch. */
    clock,
    /** Finishes background work, then closes threads and the store. */
    async close(): Promise<void> {
      // A failure does not keep what follows from closing: last requests are written before the store closes.
      metrics.close()
      try {
        const work = [hasher, breachedPasswords, deferred, rateLimiting, background]
        await Promise.all(work.map(each => each.close()))
        await closeClients()
        await mailing.close()
      } finally {
        await eventFeed?.close()
        await lastRequests.close().finally(() => storage.close())
      }
    },
  }
}

export type CoreServices = Readonly<Omit<ReturnType<typeof createCoreServices>, 'featureDeps'>>

/** `app.services`: those of the core and of its features. */
export type Services = CoreServices & FeatureServices

/**
 * Creates the services, those of the features too, and starts their background work.
 * @throws {Error} when the file of the signing secret cannot be read or created; errors of the features.
 */
export const createServices = async (config: Config, deps: ServicesDeps): Promise<CoreServices> => {
  const { featureDeps, ...core } = createCoreServices(config, deps)
  try {
    assertUnique('service', Object.keys(core), deps.features, ({ services = {} }) => Object.keys(services))
    const ofFeatures = deps.features.map(feature => createFeatureServices(feature, featureDeps))
    return Object.assign({}, core, ...(await Promise.all(ofFeatures)))
  } catch (error) {
    await core.close()
    throw error
  }
}
