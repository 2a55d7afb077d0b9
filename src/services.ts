/** Puts the service's parts together: what plugins and routes find as `app.services`. */
import { AccessTokens } from './auth/access-tokens.ts'
import { Accounts } from './auth/accounts.ts'
import { AdminKeys } from './auth/admin-keys.ts'
import type { Hashing } from './auth/hashing.ts'
import { Identities } from './auth/identities.ts'
import { KnownUsers } from './auth/known-users.ts'
import { LastRequests } from './auth/last-requests.ts'
import { PasswordChanges } from './auth/password-changes.ts'
import { hashingLimits, PasswordHashing } from './auth/password-hashing.ts'
import { Sessions } from './auth/sessions.ts'
import { keptSecret, signingKeys } from './auth/signing-keys.ts'
import type { Config } from './config.ts'
import type { Storage } from './storage/storage.ts'
import { Users } from './users/users.ts'

export interface Services {
  readonly accounts: Accounts
  readonly passwordChanges: PasswordChanges
  readonly sessions: Sessions
  readonly users: Users
  readonly identities: Identities
  readonly knownUsers: KnownUsers
  readonly adminKeys: AdminKeys
  readonly storage: Storage
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  /** Writes what is due, then lets go of threads and files. */
  close(): Promise<void>
}

export interface ServicesParts {
  readonly storage: Storage
  /** In place of threads that hash. */
  readonly hashing: Hashing | undefined
  readonly clock: () => number
  /** Told of failures that no request is there to answer for. */
  readonly onFailure: (error: unknown, message: string) => void
  /** Told of what costs speed, and passes by itself. */
  readonly onWarning: (message: string) => void
}

export const createServices = (config: Config, parts: ServicesParts): Services => {
  const { storage, clock, onFailure, onWarning } = parts
  const limits = { lifetime: config.sessionLifetime, idle: config.sessionIdle }
  const { jwtSecret } = config
  const secret = 'value' in jwtSecret ? jwtSecret.value : keptSecret(jwtSecret.keptIn)
  const tokens = new AccessTokens(signingKeys(secret, config.jwtPreviousSecret))
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
  let warned = false
  storage.onChange({
    userChanged: id => identities.userChanged(id),
    anyoneChanged: () => identities.anyoneChanged(),
    listening(isListening) {
      identities.listening(isListening)
      if (!isListening && !warned) onWarning('changes made elsewhere are not heard of: nothing is remembered')
      warned = !isListening
    },
  })
  lastRequests.start()

  const accountsParts = {
    knownUsers,
    users: storage.users,
    sessions: storage.sessions,
    tokens,
    hashing,
    limits,
    clock,
  }

  return {
    accounts: new Accounts(accountsParts),
    passwordChanges: new PasswordChanges(accountsParts),
    sessions: new Sessions({ store: storage.sessions, limits, clock }),
    users: new Users({ store: storage.users, clock }),
    identities,
    knownUsers,
    adminKeys: new AdminKeys(config.adminKeys),
    storage,
    clock,
    async close() {
      // Whatever fails, what comes after it still happens: the last write before the store is closed.
      try {
        await hashing.close()
      } finally {
        await lastRequests.close().finally(() => storage.close())
      }
    },
  }
}
