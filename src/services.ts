/** Puts the service's parts together: what plugins and routes find as `app.services`. */
import { type AccountServices, createAccountServices } from './account-services.ts'
import { ExpiredRowRemoval, type RemovalPace } from './accounts/expired-row-removal.ts'
import { limitedMails } from './accounts/limited-mails.ts'
import type { Mails } from './accounts/mails.ts'
import { LimitedGuesses, unlimitedGuesses } from './accounts/password-guesses.ts'
import { ThrottledAccounts } from './accounts/throttled-accounts.ts'
import { AccessTokens } from './auth/access-tokens.ts'
import { AdminKeys } from './auth/admin-keys.ts'
import type { Hashing } from './auth/hashing.ts'
import { Identities } from './auth/identities.ts'
import { KnownUsers } from './auth/known-users.ts'
import { LastRequests } from './auth/last-requests.ts'
import { hashingLimits, PasswordHashing } from './auth/password-hashing.ts'
import { RATE_LIMITS, type RateLimits } from './auth/rate-limits.ts'
import { readSecret, signingKeys } from './auth/signing-keys.ts'
import { withWarnings } from './change-warnings.ts'
import { DeferredWork } from './concurrency/deferred-work.ts'
import type { Config } from './config.ts'
import { Mailer } from './mail/mailer.ts'
import { NO_MAILS } from './mail/no-mails.ts'
import type { Storage } from './storage/storage.ts'

export interface Services extends AccountServices {
  readonly identities: Identities
  readonly knownUsers: KnownUsers
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

export interface ServicesParts {
  readonly storage: Storage
  /** In place of threads that hash. */
  readonly hashing: Hashing | undefined
  /** In place of those of production; `RATE_LIMIT=off` is stronger. */
  readonly rateLimits: RateLimits | undefined
  /** In place of the one at which expired rows are removed. */
  readonly removalPace: RemovalPace | undefined
  readonly clock: () => number
  /** Told of failures that no request is there to answer for. */
  readonly onFailure: (error: unknown, message: string) => void
  /** Told of what the operator has to mend. */
  readonly onError: (message: string) => void
  /** Told of what costs speed, and passes by itself. */
  readonly onWarning: (message: string) => void
  /** Told of what whoever runs the service may want to know. */
  readonly onNotice: (message: string) => void
}

export const createServices = (config: Config, parts: ServicesParts): Services => {
  const { storage, clock, onFailure, onWarning, onNotice } = parts
  const limits = { lifetime: config.sessionLifetime, idle: config.sessionIdle }
  const tokens = new AccessTokens(signingKeys(readSecret(config.jwtSecret), config.jwtPreviousSecret))
  const hashing =
    parts.hashing ??
    new PasswordHashing(
      error => onFailure(error, 'a hashing thread could not start'),
      hashingLimits(config.workers),
    )
  const knownUsers = new KnownUsers()
  const lastRequests = new LastRequests({
    knownUsers,
    store: storage.lastRequests,
    idle: config.sessionIdle,
    onFailure: error => onFailure(error, 'last requests could not be written, they are kept'),
  })
  const identities = new Identities({
    tokens,
    sessions: storage.sessions,
    knownUsers,
    lastRequests,
    limits,
    clock,
  })
  const tell = { error: parts.onError, warn: onWarning, info: onNotice }
  storage.onChange(withWarnings(identities, tell, clock))
  lastRequests.start()
  const expiredRows = new ExpiredRowRemoval({
    store: storage.expiredRows,
    openRateLimit: storage.rateLimit,
    idle: config.sessionIdle,
    eventsKept: config.eventsKept,
    clock,
    onFailure: error => onFailure(error, 'expired rows could not be removed, the next pass goes on'),
    pace: parts.removalPace,
  })
  expiredRows.start()

  const { mail, publicUrl, webUrl } = config
  const mailer =
    mail.url === 'off' ? null : new Mailer({ mail, publicUrl, webUrl, onFailure, onWarning, onNotice })
  const later = new DeferredWork(error => onFailure(error, 'a mail that was asked for was given up'))
  const rateLimits = config.rateLimit ? (parts.rateLimits ?? RATE_LIMITS) : null
  const eventsLater = new DeferredWork(error => onFailure(error, 'an event of the audit log was given up'))
  const throttled = new ThrottledAccounts({
    users: storage.users,
    events: storage.events,
    openRateLimit: storage.rateLimit,
    later: eventsLater,
    clock,
  })
  const guesses =
    rateLimits === null
      ? unlimitedGuesses
      : new LimitedGuesses(storage.rateLimit, rateLimits.guesses, (guesser, seconds) =>
          throttled.note(guesser, seconds),
        )
  const allMails = mailer ?? NO_MAILS
  const limited =
    rateLimits === null
      ? null
      : limitedMails(allMails, storage.rateLimit, rateLimits.mails, () =>
          onWarning('a mail was not sent: its address has been sent too many'),
        )
  const mails = limited ?? allMails
  const accountServices = createAccountServices({
    storage,
    tokens,
    hashing,
    guesses,
    knownUsers,
    limits,
    mails,
    later,
    requireEmailVerification: config.requireEmailVerification,
    clock,
  })

  return {
    ...accountServices,
    identities,
    knownUsers,
    adminKeys: new AdminKeys(config.adminKeys),
    mails,
    storage,
    rateLimits,
    clock,
    async close() {
      // Whatever fails, what comes after it still happens: the last write before the store is closed.
      try {
        await Promise.all([hashing.close(), later.close(), eventsLater.close(), expiredRows.close()])
        await limited?.counted()
        await mailer?.close()
      } finally {
        await lastRequests.close().finally(() => storage.close())
      }
    },
  }
}
