/** The composition root: creates every service. Plugins and routes find them as `app.services`. */
import type { BaseLogger } from 'pino'
import { NewAccounts } from './accounts/account-creation.ts'
import { AccountRemoval } from './accounts/account-removal.ts'
import { Exports, Imports } from './accounts/bulk-users.ts'
import { CleanUp, type CleanUpPace } from './accounts/clean-up.ts'
import { EmailAddresses } from './accounts/email-addresses.ts'
import { ExistingAccountNotice } from './accounts/existing-account-notice.ts'
import { FactorRemoval } from './accounts/factor-removal.ts'
import { Impersonation } from './accounts/impersonation.ts'
import { ACCOUNT_MAILS, type AccountMails } from './accounts/mails.ts'
import { PasswordChanges } from './accounts/password-changes.ts'
import { PasswordResets } from './accounts/password-resets.ts'
import { Reauthentication } from './accounts/reauthentication.ts'
import { SignIns } from './accounts/sign-ins.ts'
import { SignUps } from './accounts/sign-ups.ts'
import { adminKeys } from './admin-keys/admin-keys.ts'
import type { AdminKeyStore } from './admin-keys/stored-admin-keys.ts'
import { apiKeys } from './api-keys/api-keys.ts'
import type { ApiKeyStore } from './api-keys/stored-api-keys.ts'
import { AuditLog } from './audit-log/audit-log.ts'
import { EventFeed, type EventHandler } from './audit-log/event-feed.ts'
import { AccessTokens } from './auth/access-tokens.ts'
import { AdminAuthenticator } from './auth/admin-authenticator.ts'
import { Authenticator } from './auth/authenticator.ts'
import { allListeners } from './auth/invalidation.ts'
import { withInvalidationLog } from './auth/invalidation-log.ts'
import { LastRequests } from './auth/last-requests.ts'
import { Sessions } from './auth/sessions.ts'
import { UserCache } from './auth/user-cache.ts'
import { WarmUp } from './auth/warm-up.ts'
import type { FeatureServices } from './built-in-features.ts'
import { DeferredWork } from './concurrency/deferred-work.ts'
import type { Config } from './config/config.ts'
import { EmailCodes } from './email-codes/email-codes.ts'
import { type EmailCodeStore, storedEmailCodes } from './email-codes/stored-email-codes.ts'
import { Keyring } from './encryption/keyring.ts'
import {
  adminScopesOf,
  createFeatureServices,
  eventSchemasOf,
  type Feature,
  userScopesOf,
} from './feature.ts'
import type { MailKinds, MailSender, MailTemplates } from './mail/kinds.ts'
import { Mailer, NO_MAILS } from './mail/mailer.ts'
import { RateLimitedMailer } from './mail/rate-limited-mailer.ts'
import { Metrics } from './metrics/metrics.ts'
import type { WorkerChannel } from './metrics/worker-metrics.ts'
import { BulkPasskeys } from './passkeys/bulk-passkeys.ts'
import { Challenges } from './passkeys/challenges.ts'
import { PasskeySignIns } from './passkeys/passkey-sign-ins.ts'
import { Passkeys } from './passkeys/passkeys.ts'
import { relyingPartyOf } from './passkeys/relying-party.ts'
import { type PasskeyStore, storedPasskeys } from './passkeys/stored-passkeys.ts'
import { hasherLimits, type PasswordHasher, PooledPasswordHasher } from './passwords/hasher.ts'
import { RATE_LIMITS, type RateLimitName, type RateLimits } from './rate-limits/limits.ts'
import { noLoginThrottle, StoredLoginThrottle } from './rate-limits/login-throttle.ts'
import { ThrottleEvents } from './rate-limits/throttle-events.ts'
import { SHUTDOWN } from './shutdown.ts'
import { StatusReport } from './status-report.ts'
import { agingTables } from './storage/aging-tables.ts'
import type { Storage } from './storage/storage.ts'
import { tablesOf } from './storage/stored-feature.ts'
import { withLastRequests } from './storage/with-last-requests.ts'
import { BulkTotp } from './totp/bulk-totp.ts'
import { CodeVerifier } from './totp/code-verifier.ts'
import { storedTotp, type TotpStore } from './totp/stored-totp.ts'
import { Totp } from './totp/totp.ts'
import { Users } from './users/users.ts'

export interface ServicesDeps {
  readonly storage: Storage
  /** See `allFeatures`. */
  readonly features: readonly Feature[]
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  /** For what no request reports: failures of background work, and what the operator should know. */
  readonly logger: Pick<BaseLogger, 'error' | 'warn' | 'info'>
  /** Default: a pool of hashing threads. */
  readonly hasher: PasswordHasher | undefined
  /** Default: {@link RATE_LIMITS}. Ignored with `RATE_LIMIT=off`. */
  readonly rateLimits: RateLimits | undefined
  /** Default: the pace of production. */
  readonly cleanUpPace: CleanUpPace | undefined
  /** Milliseconds until requested mails, and events of the login throttle, at most. Default: those of {@link DeferredWork}. */
  readonly maxDeferral: number | undefined
  /** Called for every event of the audit log, see {@link EventFeed}. Default: none. */
  readonly onEvent?: EventHandler | undefined
  /** Replace the texts of mails. */
  readonly mailTemplates?: MailTemplates<AccountMails> | undefined
  /** In a worker. */
  readonly workerChannel?: WorkerChannel | undefined
}

/** The services of the core. */
export type CoreServices = Readonly<ReturnType<typeof createCoreServices>>

/** `app.services`: those of the core and of its features. */
export type Services = CoreServices & FeatureServices

/** The mails of accounts and features, with the limit for each recipient; and their shutdown, which sends what waits. */
const createMails = (
  { mail, productName, publicUrl, webUrl, accountUrl }: Config,
  { storage, features, logger, mailTemplates: templates }: ServicesDeps,
  rateLimits: RateLimits | null,
) => {
  const mailerDeps = {
    ...{ mail, productName, templates, publicUrl, webUrl, accountUrl },
    ...{ log: logger, closing: SHUTDOWN.mails },
  }
  const kinds: typeof ACCOUNT_MAILS & MailKinds = Object.assign(
    {},
    ACCOUNT_MAILS,
    ...features.map(({ mails }) => mails),
  )
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
  const close = async (): Promise<void> => {
    await limited?.counted()
    await mailer?.close()
  }
  return { mails, mailer, close }
}

const createCoreServices = (config: Config, deps: ServicesDeps) => {
  const { clock, logger } = deps
  const userCache = new UserCache()
  const storage = withLastRequests(deps.storage, userCache)
  const { users, sessions, emailTokens, events, accounts: accountStore, bulkUsers } = storage
  const { openRateLimit, deliverInvalidations } = storage
  const logFailure = (message: string) => (err: unknown) => logger.error({ err }, message)

  // Authentication
  const limits = { lifetime: config.sessionLifetime, idle: config.sessionIdle }
  const tokens = AccessTokens.from(config)
  const hasher =
    deps.hasher ??
    new PooledPasswordHasher(logFailure('a hashing thread could not start'), hasherLimits(config.workers))
  const apiKeyStore = storage.features[apiKeys.name] as ApiKeyStore
  const adminKeyStore = storage.features[adminKeys.name] as AdminKeyStore
  const totpStore = storage.features[storedTotp.name] as TotpStore
  const passkeyStore = storage.features[storedPasskeys.name] as PasskeyStore
  const emailCodeStore = storage.features[storedEmailCodes.name] as EmailCodeStore
  const keyring = Keyring.from(config)
  const lastRequests = new LastRequests({
    userCache,
    store: storage.lastRequests,
    apiKeys: { noteRequests: requests => apiKeyStore.noteApiKeyRequests(requests) },
    adminKeys: { noteRequests: requests => adminKeyStore.noteAdminKeyRequests(requests) },
    idle: config.sessionIdle,
    closing: SHUTDOWN.lastRequests,
    onFailure: logFailure('last requests could not be written, the next batch includes them'),
  })
  const authenticator = new Authenticator({
    ...{ tokens, sessions, apiKeys: storage.apiKeys },
    ...{ userCache, lastRequests, limits, deliverInvalidations, clock },
    capacity: config.cacheSize,
  })
  const adminAuthenticator = new AdminAuthenticator({
    rootKeys: config.adminKeys,
    adminKeys: storage.adminKeys,
    lastRequests,
    deliverInvalidations,
    clock,
  })
  storage.subscribe(withInvalidationLog(allListeners([authenticator, adminAuthenticator]), logger, clock))
  lastRequests.start()

  // Rate limits
  const rateLimits = config.isRateLimited ? (deps.rateLimits ?? RATE_LIMITS) : null
  const deferredEvents = new DeferredWork(
    logFailure('an event of the audit log was dropped'),
    deps.maxDeferral,
  )
  const throttleEvents = new ThrottleEvents({
    users,
    events,
    openRateLimit,
    deferred: deferredEvents,
    clock,
  })
  const loginThrottle =
    rateLimits === null
      ? noLoginThrottle
      : new StoredLoginThrottle(openRateLimit, rateLimits.loginThrottle, (subject, seconds) =>
          throttleEvents.note(subject, seconds),
        )

  // Accounts
  const { mails, mailer, close: closeMails } = createMails(config, deps, rateLimits)
  const deferred = new DeferredWork(logFailure('a requested mail was dropped'), deps.maxDeferral)
  const totpDeps = { store: totpStore, keyring, loginThrottle, mails, clock }
  const bulkFactors = [
    new BulkTotp({ store: totpStore, keyring: () => keyring }),
    new BulkPasskeys({ store: passkeyStore }),
  ]
  const secondFactor = new CodeVerifier({ ...totpDeps, openRateLimit, logger })
  const reauthentication = new Reauthentication({
    ...{ users, sessions, hasher, loginThrottle, secondFactor, clock },
  })
  const accountDeps = {
    users,
    sessions,
    emailTokens,
    events,
    accountStore,
    tokens,
    hasher,
    loginThrottle,
    secondFactor,
    limits,
    mails,
    deferred,
    requireEmailVerification: config.requireEmailVerification,
    clock,
    reauthentication,
    existingAccountNotice: new ExistingAccountNotice({ users, emailTokens, events, mails, clock }),
  }

  const cleanUp = new CleanUp({
    store: storage.cleanUp,
    openRateLimit,
    idle: config.sessionIdle,
    tables: [...agingTables(config.eventsKept), ...tablesOf(deps.features)],
    clock,
    onFailure: logFailure('expired rows could not be removed, the next pass continues'),
    pace: deps.cleanUpPace,
  })
  cleanUp.start()

  const eventFeed =
    deps.onEvent === undefined
      ? null
      : new EventFeed({
          store: events,
          handler: deps.onEvent,
          onFailure: (err, message) => logger.error({ err }, message),
        })

  const signUps = new SignUps(accountDeps)
  const signIns = new SignIns(accountDeps)
  const challenges = new Challenges({ store: passkeyStore, party: relyingPartyOf(config), clock })
  const passkeyDeps = { store: passkeyStore, challenges, mails, clock }
  const emailCodes =
    config.hasEmailCodes && keyring !== null
      ? new EmailCodes({ ...accountDeps, store: emailCodeStore, keyring, outcomes: signIns.outcomes, logger })
      : null
  const metrics = new Metrics({
    ...{ signUps, signIns, throttleEvents, hasher, authenticator, lastRequests, storage, mailer },
    limits: Object.keys(RATE_LIMITS.perAddress) as RateLimitName[],
    workerChannel: deps.workerChannel,
  })

  const status = new StatusReport({ config, authenticator, users, storage })
  const warmUp = new WarmUp({ sessions, authenticator, tokens, ping: storage.ping, log: logger })

  return {
    signUps,
    signIns,
    newAccounts: new NewAccounts(accountDeps),
    accountRemoval: new AccountRemoval(accountDeps),
    emailAddresses: new EmailAddresses(accountDeps),
    passwordChanges: new PasswordChanges(accountDeps),
    passwordResets: new PasswordResets(accountDeps),
    totp: new Totp({ ...totpDeps, productName: config.productName }),
    passkeys: new Passkeys(passkeyDeps),
    passkeySignIns: new PasskeySignIns({ ...accountDeps, ...passkeyDeps, outcomes: signIns.outcomes }),
    factorRemoval: new FactorRemoval(accountDeps),
    /** `null` with `EMAIL_CODES=off`. */
    emailCodes,
    impersonation: new Impersonation({ ...accountDeps, adminKeys: adminKeyStore }),
    sessions: new Sessions({ store: sessions, limits, clock }),
    users: new Users({ store: users, clock }),
    auditLog: new AuditLog(events),
    /** Every type of event. */
    eventSchemas: eventSchemasOf(deps.features),
    userScopes: userScopesOf(deps.features),
    adminScopes: adminScopesOf(deps.features),
    reauthentication,
    imports: new Imports({ store: bulkUsers, factors: bulkFactors, clock }),
    exports: new Exports({ store: bulkUsers, factors: bulkFactors }),
    authenticator,
    adminAuthenticator,
    /** The public keys of access tokens. */
    jwks: tokens.publicKeys,
    mails,
    metrics,
    status,
    warmUp,
    storage,
    /** `null` without a handler of events. */
    eventFeed,
    /** `null` with `RATE_LIMIT=off`. */
    rateLimits,
    /** Milliseconds since the epoch. */
    clock,
    /** Finishes background work, then closes threads and the store. */
    async close(): Promise<void> {
      // A failure does not keep what follows from closing: last requests are written before the store closes.
      metrics.close()
      try {
        const work = [hasher, deferred, deferredEvents, cleanUp, warmUp]
        await Promise.all(work.map(each => each.close()))
        await closeMails()
      } finally {
        await eventFeed?.close()
        await lastRequests.close().finally(() => storage.close())
      }
    },
  }
}

/**
 * Creates the services, those of the features too, and starts their background work.
 * @throws {Error} when the file of the signing secret cannot be read or created; errors of the features.
 */
export const createServices = async (config: Config, deps: ServicesDeps): Promise<CoreServices> => {
  const core = createCoreServices(config, deps)
  const { mails, users, storage } = core
  const { features, clock, logger } = deps
  const { publicUrl, webUrl, productName, isProduction } = config
  const featureDeps = {
    ...{ stores: storage.features, mails, users, clock, logger },
    config: { publicUrl, webUrl, productName, isProduction },
  }
  try {
    return Object.assign({}, core, ...features.map(feature => createFeatureServices(feature, featureDeps)))
  } catch (error) {
    await core.close()
    throw error
  }
}
