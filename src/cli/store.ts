/** Use cases on the store that the environment names: without hashing threads, caches and background work. */
import { existsSync } from 'node:fs'
import { NewAccounts } from '../accounts/account-creation.ts'
import { Exports, Imports } from '../accounts/bulk-users.ts'
import { AuditLog } from '../audit-log/audit-log.ts'
import { Sessions } from '../auth/sessions.ts'
import { allFeatures } from '../built-in-features.ts'
import { ConfigError, encryptionKeysOf } from '../config/config.ts'
import { type Environment, readSettings } from '../config/read-settings.ts'
import type { Values } from '../config/settings.ts'
import { Keyring } from '../encryption/keyring.ts'
import { BulkPasskeys } from '../passkeys/bulk-passkeys.ts'
import { type PasskeyStore, storedPasskeys } from '../passkeys/stored-passkeys.ts'
import { BreachedPasswords } from '../passwords/breached-passwords.ts'
import { hash } from '../passwords/hashing-thread.ts'
import { canonicalPassword } from '../passwords/policy.ts'
import { openStorage, type StorageLocation } from '../storage/open.ts'
import type { Storage } from '../storage/storage.ts'
import { BulkTotp } from '../totp/bulk-totp.ts'
import { storedTotp, type TotpStore } from '../totp/stored-totp.ts'
import { Users } from '../users/users.ts'
import { CommandError } from './failure.ts'
import type { DatabaseOptions } from './options.ts'
import { printStatus } from './output.ts'

/** Nearly all commands run one query at a time. */
const CONNECTIONS = 1

/** The environment of the process, with `--database` in place of `DATABASE_URL`. */
export const environment = ({ database }: DatabaseOptions): Environment =>
  database === undefined
    ? process.env
    : { ...process.env, DATABASE_URL: database, DATABASE_URL_FILE: undefined }

/**
 * Reads the settings, without the checks of the whole configuration: most commands need no token secret, for example.
 * @throws {ConfigError} with all errors at once.
 */
export const settings = (options: DatabaseOptions): Values => {
  const { values, errors } = readSettings(environment(options))
  if (errors.length > 0) throw new ConfigError(errors)
  return values
}

/** Opening a mistyped path would create an empty store. */
const assertExists = (location: StorageLocation): void => {
  if (location.engine === 'sqlite' && !existsSync(location.file))
    throw new CommandError(`There is no file ${location.file}: the service creates it when it first starts`)
}

export interface Store {
  readonly users: Users
  readonly sessions: Sessions
  readonly newAccounts: NewAccounts
  readonly auditLog: AuditLog
  readonly imports: Imports
  readonly exports: Exports
  /** See `Storage.features`. */
  readonly featureStores: Storage['features']
}

/** Hashes on the main thread, which has nothing else to do. */
const hasher = { hash: async (password: string) => hash(canonicalPassword(password)) }

/**
 * Runs `use` on the store. Running services notice the changes like those of other instances.
 * @throws {ConfigError}; {CommandError} if the file does not exist; {Error} if the store cannot be opened; errors of `use`.
 */
export const withStore = async (
  options: DatabaseOptions,
  use: (store: Store) => Promise<void>,
  connections = CONNECTIONS,
): Promise<void> => {
  const values = settings(options)
  const { DATABASE_URL, BREACHED_PASSWORDS_URL, SESSION_LIFETIME, SESSION_IDLE } = values
  assertExists(DATABASE_URL)
  const storage = await openStorage(DATABASE_URL, connections, allFeatures())
  const { users, accounts: accountStore, sessions, events, bulkUsers } = storage
  const clock = Date.now
  const limits = { lifetime: SESSION_LIFETIME, idle: SESSION_IDLE }
  const breachedPasswords = new BreachedPasswords(BREACHED_PASSWORDS_URL, error =>
    printStatus(`The password was not compared with breached ones: ${(error as Error).message}`),
  )
  let keyring: Keyring | null | undefined
  const factors = [
    new BulkTotp({
      store: storage.features[storedTotp.name] as TotpStore,
      // Created on demand: on SQLite this may create the file of the key.
      keyring() {
        keyring ??= Keyring.from(encryptionKeysOf(values))
        return keyring
      },
    }),
    new BulkPasskeys({ store: storage.features[storedPasskeys.name] as PasskeyStore }),
  ]
  try {
    await use({
      // The command line sends no mails.
      users: new Users({ store: users, onEmailChange: () => undefined, clock }),
      sessions: new Sessions({ store: sessions, limits, clock }),
      newAccounts: new NewAccounts({ users, accountStore, hasher, breachedPasswords, clock }),
      auditLog: new AuditLog(events),
      imports: new Imports({ store: bulkUsers, factors, clock }),
      exports: new Exports({ store: bulkUsers, factors }),
      featureStores: storage.features,
    })
  } finally {
    await breachedPasswords.close()
    await storage.close()
  }
}
