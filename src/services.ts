/** The use cases around accounts, put together. */

import { NewAccounts } from './accounts/account-creation.ts'
import { AccountRemoval } from './accounts/account-removal.ts'
import { Accounts, type AccountsDeps, VerifiedSignUps } from './accounts/accounts.ts'
import { Exports, Imports } from './accounts/bulk-users.ts'
import { CleanUp, type CleanUpPace } from './accounts/clean-up.ts'
import { EmailAddresses } from './accounts/email-addresses.ts'
import { ExistingAccountNotice } from './accounts/existing-account-notice.ts'
import { Impersonation } from './accounts/impersonation.ts'
import { ACCOUNT_MAILS, type Mails } from './accounts/mails.ts'
import { PasswordChanges } from './accounts/password-changes.ts'
import { PasswordResets } from './accounts/password-resets.ts'
import { Reauthentication } from './accounts/reauthentication.ts'
import { Events } from './audit-log/audit-log.ts'
import { AccessTokens } from './auth/access-tokens.ts'
import { AdminKeys } from './auth/admin-keys.ts'
import { Authenticator } from './auth/authenticator.ts'
import { withWarnings } from './auth/invalidation.ts'
import { LastRequests } from './auth/last-requests.ts'
import { readSecret } from './auth/secret-file.ts'
import { Sessions } from './auth/sessions.ts'
import { signingKeys } from './auth/signing-keys.ts'
import { UserCache } from './auth/user-cache.ts'
import { DeferredWork } from './concurrency/deferred-work.ts'
import type { Config } from './config/config.ts'
import { Mailer, NO_MAILS } from './mail/mailer.ts'
import { RateLimitedMailer } from './mail/rate-limited-mailer.ts'
import { hasherLimits, type PasswordHasher, PooledPasswordHasher } from './passwords/hasher.ts'
import { RATE_LIMITS, type RateLimits } from './rate-limits/limits.ts'
import { noLoginThrottle, StoredLoginThrottle } from './rate-limits/login-throttle.ts'
import { ThrottleEvents } from './rate-limits/throttle-events.ts'
import type { Storage } from './storage/storage.ts'
import { Users } from './users/users.ts'

export interface AccountServices {
  readonly accounts: Accounts
  readonly newAccounts: NewAccounts
  readonly verifiedSignUps: VerifiedSignUps
  readonly accountRemoval: AccountRemoval
  readonly emailAddresses: EmailAddresses
  readonly passwordChanges: PasswordChanges
  readonly passwordResets: PasswordResets
  readonly impersonation: Impersonation
  readonly sessions: Sessions
  readonly users: Users
  readonly events: Events
  readonly imports: Imports
  readonly exports: Exports
}

export interface AccountServicesDeps extends Omit<AccountsDeps, 'users' | 'accountStore' | 'sessions'> {
  readonly storage: Storage
  readonly later: DeferredWork
}

export const createAccountServices = (given: AccountServicesDeps): AccountServices => {
  const { users, accounts: accountStore, sessions, emailTokens, events } = given.storage
  const reauthentication = new Reauthentication({ ...given, users })
  const parts = {
    ...given,
    users,
    accountStore,
    sessions,
    emailTokens,
    events,
    reauthentication,
    existingAccountNotice: new ExistingAccountNotice({ ...given, users, emailTokens, events }),
  }
  return {
    accounts: new Accounts(parts),
    newAccounts: new NewAccounts(parts),
    verifiedSignUps: new VerifiedSignUps(parts),
    accountRemoval: new AccountRemoval(parts),
    emailAddresses: new EmailAddresses(parts),
    passwordChanges: new PasswordChanges(parts),
    passwordResets: new PasswordResets(parts),
    impersonation: new Impersonation(parts),
    sessions: new Sessions({ ...parts, store: sessions }),
    users: new Users({ ...parts, store: users }),
    events: new Events(events),
    imports: new Imports({ ...parts, store: given.storage.bulkUsers }),
    exports: new Exports({ ...parts, store: given.storage.bulkUsers }),
  }
}

/** Puts the service's parts together: what plugins and routes find as `app.services`. */

export interface Services extends AccountServices {
  readonly authenticator: Authenticator
  readonly userCache: UserCache
  readonly adminKeys: AdminKeys
  readonly mails: Mails
  readonly storage: Storage
  /** `null`: nothing is limited. */
  readonly rateLimits: RateLimits | null
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  /** Writes what is due, then lets go of threads and files. */
  close(): Promise<void>
}

export interface ServicesDeps {
  readonly storage: Storage
  /** In place of threads that hash. */
  readonly hashing: PasswordHasher | undefined
  /** In place of those of production; `RATE_LIMIT=off` is stronger. */
  readonly rateLimits: RateLimits | undefined
  /** In place of the one at which expired rows are removed. */
  readonly cleanUpPace: CleanUpPace | undefined
  readonly clock: () => number
  /** Told of failures that no request is there to answer for. */
  readonly onFailure: (error: unknown, message: string) => void
  /** Reports what the operator has to fix. */
  readonly onError: (message: string) => void
  /** Told of what costs speed, and passes by itself. */
  readonly onWarning: (message: string) => void
  /** Told of what whoever runs the service may want to know. */
  readonly onNotice: (message: string) => void
}

export const createServices = (config: Config, parts: ServicesDeps): Services => {
  const { storage, clock, onFailure, onWarning, onNotice } = parts
  const limits = { lifetime: config.sessionLifetime, idle: config.sessionIdle }
  const tokens = new AccessTokens(signingKeys(readSecret(config.jwtSecret), config.jwtPreviousSecret))
  const hashing =
    parts.hashing ??
    new PooledPasswordHasher(
      error => onFailure(error, 'a hashing thread could not start'),
      hasherLimits(config.workers),
    )
  const userCache = new UserCache()
  const lastRequests = new LastRequests({
    userCache,
    store: storage.lastRequests,
    idle: config.sessionIdle,
    onFailure: error => onFailure(error, 'last requests could not be written, they are kept'),
  })
  const authenticator = new Authenticator({
    tokens,
    sessions: storage.sessions,
    userCache,
    lastRequests,
    limits,
    clock,
  })
  const tell = { error: parts.onError, warn: onWarning, info: onNotice }
  storage.subscribe(withWarnings(authenticator, tell, clock))
  lastRequests.start()
  const cleanUp = new CleanUp({
    store: storage.cleanUp,
    openRateLimit: storage.rateLimit,
    idle: config.sessionIdle,
    eventsKept: config.eventsKept,
    clock,
    onFailure: error => onFailure(error, 'expired rows could not be removed, the next pass goes on'),
    pace: parts.cleanUpPace,
  })
  cleanUp.start()

  const { mail, publicUrl, webUrl } = config
  const mailer =
    mail.url === 'off'
      ? null
      : new Mailer(ACCOUNT_MAILS, { mail, publicUrl, webUrl, onFailure, onWarning, onNotice })
  const later = new DeferredWork(error => onFailure(error, 'a mail that was asked for was given up'))
  const rateLimits = config.rateLimit ? (parts.rateLimits ?? RATE_LIMITS) : null
  const eventsLater = new DeferredWork(error => onFailure(error, 'an event of the audit log was given up'))
  const throttled = new ThrottleEvents({
    users: storage.users,
    events: storage.events,
    openRateLimit: storage.rateLimit,
    later: eventsLater,
    clock,
  })
  const loginThrottle =
    rateLimits === null
      ? noLoginThrottle
      : new StoredLoginThrottle(storage.rateLimit, rateLimits.loginThrottle, (subject, seconds) =>
          throttled.note(subject, seconds),
        )
  const allMails: Mails = mailer ?? NO_MAILS
  const limited =
    rateLimits === null
      ? null
      : new RateLimitedMailer({
          kinds: ACCOUNT_MAILS,
          mails: allMails,
          openRateLimit: storage.rateLimit,
          limit: rateLimits.mails,
          onDropped: () => onWarning('a mail was not sent: its address has been sent too many'),
        })
  const mails = limited ?? allMails
  const accountServices = createAccountServices({
    storage,
    tokens,
    hashing,
    loginThrottle,
    userCache,
    limits,
    mails,
    later,
    requireEmailVerification: config.requireEmailVerification,
    clock,
  })

  return {
    ...accountServices,
    authenticator,
    userCache,
    adminKeys: new AdminKeys(config.adminKeys),
    mails,
    storage,
    rateLimits,
    clock,
    async close() {
      // Whatever fails, what comes after it still happens: the last write before the store is closed.
      try {
        await Promise.all([hashing.close(), later.close(), eventsLater.close(), cleanUp.close()])
        await limited?.counted()
        await mailer?.close()
      } finally {
        await lastRequests.close().finally(() => storage.close())
      }
    },
  }
}
