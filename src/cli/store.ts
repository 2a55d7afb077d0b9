/** The store of the environment, and the use cases on it: no thread that hashes, no cache, nothing that is due later. */
import { existsSync } from 'node:fs'
import { NewAccounts } from '../accounts/account-creation.ts'
import { Exports, Imports } from '../accounts/bulk-users.ts'
import { Events } from '../audit-log/audit-log.ts'
import { Sessions } from '../auth/sessions.ts'
import { UserCache } from '../auth/user-cache.ts'
import { ConfigError } from '../config/config.ts'
import { type Environment, readSettings, type Values } from '../config/settings.ts'
import { hash } from '../passwords/hashing-thread.ts'
import { canonicalPassword } from '../passwords/policy.ts'
import { openStorage, type StorageLocation } from '../storage/open.ts'
import { Users } from '../users/users.ts'
import { Refusal } from './failure.ts'
import type { DatabaseOptions } from './options.ts'

/** Commands do one thing after the other. */
const CONNECTIONS = 1

/** The environment of the service, with the database that was asked for. */
export const environment = ({ database }: DatabaseOptions): Environment =>
  database === undefined
    ? process.env
    : { ...process.env, DATABASE_URL: database, DATABASE_URL_FILE: undefined }

/**
 * The settings alone: what else the service needs to start, such as the secret of its tokens, is of no concern to commands
 * that issue none.
 * @throws {ConfigError} with all errors.
 */
export const settings = (options: DatabaseOptions): Values => {
  const { values, errors } = readSettings(environment(options))
  if (errors.length > 0) throw new ConfigError(errors)
  return values
}

/** A path that is mistyped would be a new and empty store. */
const assertExists = (location: StorageLocation): void => {
  if (location.engine === 'sqlite' && !existsSync(location.file))
    throw new Refusal(`There is no file ${location.file}: the service makes it when it first starts`)
}

export interface Store {
  readonly users: Users
  readonly sessions: Sessions
  readonly newAccounts: NewAccounts
  readonly events: Events
  readonly imports: Imports
  readonly exports: Exports
}

/** On the thread that asks, which has nothing else to do. */
const hasher = { hash: async (password: string) => hash(canonicalPassword(password)) }

/**
 * Runs `use` on the store. Services that run on it notice what is changed as they notice each other's changes.
 * @throws {ConfigError}, {Refusal} when there is none; {Error} when it cannot be opened; whatever `use` throws.
 */
export const withStore = async (
  options: DatabaseOptions,
  use: (store: Store) => Promise<void>,
): Promise<void> => {
  const { DATABASE_URL, SESSION_LIFETIME, SESSION_IDLE } = settings(options)
  assertExists(DATABASE_URL)
  const storage = await openStorage(DATABASE_URL, CONNECTIONS)
  const { users, accounts: accountStore, sessions, events, bulkUsers } = storage
  const clock = Date.now
  const limits = { lifetime: SESSION_LIFETIME, idle: SESSION_IDLE }
  try {
    await use({
      users: new Users({ store: users, clock }),
      sessions: new Sessions({ store: sessions, limits, clock }),
      newAccounts: new NewAccounts({ users, accountStore, hasher, clock }),
      events: new Events(events),
      imports: new Imports({ store: bulkUsers, clock }),
      exports: new Exports({ store: bulkUsers, userCache: new UserCache() }),
    })
  } finally {
    await storage.close()
  }
}
