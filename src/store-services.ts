/** The services that need a store and nothing that runs: those of commands. The running service creates the same. */
import { NewAccounts } from './accounts/account-creation.ts'
import { Exports, Imports } from './accounts/bulk-users.ts'
import { AuditLog } from './audit-log/audit-log.ts'
import type { SessionLimits } from './auth/session.ts'
import { Sessions } from './auth/sessions.ts'
import type { Keyring } from './encryption/keyring.ts'
import { bulkFactorsOf, bulkPropertiesOf, type Feature, signInMethodsOf } from './feature.ts'
import type { BreachedPasswords } from './passwords/breached-passwords.ts'
import type { PasswordHasher } from './passwords/hasher.ts'
import { signInTablesOf } from './storage/sign-in-tables.ts'
import type { Storage } from './storage/storage.ts'
import { tablesOf } from './storage/stored-feature.ts'
import type { User } from './users/user.ts'
import { type FinishRemoval, Users } from './users/users.ts'

export interface StoreServicesDeps {
  readonly storage: Storage
  readonly features: readonly Feature[]
  /** The settings of features. */
  readonly featureSettings: Readonly<Record<string, unknown>>
  readonly hasher: Pick<PasswordHasher, 'hash'>
  readonly breachedPasswords: BreachedPasswords
  /** Called when it is needed: on SQLite, the first call creates the file of the key. */
  readonly keyring: () => Keyring | null
  readonly limits: SessionLimits
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  /** Called when an administrator has changed an e-mail. */
  readonly onEmailChange: (from: User, to: User) => void
  readonly finishRemoval: FinishRemoval
}

export const createStoreServices = ({ storage, features, limits, clock, ...deps }: StoreServicesDeps) => {
  const { users, accounts: accountStore, sessions, events, bulkUsers: store } = storage
  const factors = bulkFactorsOf(features, storage.features, deps.keyring)
  const signInTables = signInTablesOf(tablesOf(features), signInMethodsOf(features, deps.featureSettings))
  const properties = bulkPropertiesOf(features, storage.features, clock)
  return {
    users: new Users({ ...deps, store: users, signInTables, clock }),
    sessions: new Sessions({ store: sessions, limits, clock }),
    newAccounts: new NewAccounts({ ...deps, users, accountStore, clock }),
    auditLog: new AuditLog(events),
    imports: new Imports({ store, factors, properties, clock }),
    exports: new Exports({ store, signInTables, factors, properties }),
  }
}

export type StoreServices = ReturnType<typeof createStoreServices>
