/** The services that need a store and nothing that runs: those of commands. The running service creates the same. */
import { NewAccounts } from '#core/accounts/account-creation'
import { Exports, Imports } from '#core/accounts/bulk-users'
import type { Mails } from '#core/accounts/mails'
import { signInTablesOf } from '#core/accounts/sign-in-tables'
import { AuditLog } from '#core/audit-log/audit-log'
import type { SessionLimits } from '#core/auth/session'
import { Sessions } from '#core/auth/sessions'
import type { BreachedPasswords } from '#core/passwords/breached-passwords'
import type { PasswordHasher } from '#core/passwords/hasher'
import type { Storage } from '#core/store/store'
import { type FinishRemoval, Users } from '#core/users/users'
import { bulkFactorsOf, bulkPropertiesOf, signInMethodsOf } from '#feature/assembly'
import type { Feature } from '#feature/declaration'
import type { Keyring } from '#feature/encryption/keyring'
import { tablesOf } from '#storage/stored-feature'

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
  readonly mails: Mails
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
