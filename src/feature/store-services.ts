/** What the running service and the command line create alike: use cases that need a store and nothing that runs, and what features get. */
import { HttpClient } from '#base/http-client/http-client'
import type { ResolveHost } from '#base/http-client/public-addresses'
import { NewAccounts } from '#core/accounts/account-creation'
import { Exports, Imports } from '#core/accounts/bulk-users'
import type { Mails } from '#core/accounts/mails'
import type { ProtectedRole } from '#core/accounts/protected-role'
import { signInTablesOf } from '#core/accounts/sign-in-tables'
import { AuditLog } from '#core/audit-log/audit-log'
import type { SessionLimits } from '#core/auth/session'
import { Sessions } from '#core/auth/sessions'
import type { BreachedPasswords } from '#core/passwords/breached-passwords'
import type { PasswordHasher } from '#core/passwords/hasher'
import { ReturnTargets } from '#core/return-targets/return-targets'
import { type ReturnTargetStore, storedReturnTargets } from '#core/return-targets/stored-return-targets'
import type { Storage } from '#core/store/store'
import { type FinishRemoval, Users } from '#core/users/users'
import { tablesOf } from '#storage/stored-feature'
import { bulkFactorsOf, bulkPropertiesOf, type EarlyFeatureDeps, signInMethodsOf } from './assembly.ts'
import type { Feature } from './declaration.ts'
import type { BaseDeps, FeatureConfig } from './deps.ts'
import type { Keyring } from './encryption/keyring.ts'

type OfConfig = Pick<BaseDeps, 'allowedOrigins' | 'nativeOrigins'>

interface ReturnConfig {
  /** Origins to which pages lead back. */
  readonly returnOrigins: readonly string[]
}

type OfStorage = Pick<
  EarlyFeatureDeps,
  | 'stores'
  | 'openRateLimit'
  | 'eventLog'
  | 'findUser'
  | 'findUserByEmail'
  | 'openHttpClient'
  | 'returnTargets'
>

/**
 * What features are created with before there are use cases.
 * @param resolve finds the addresses of hosts. Default: the resolver of the machine.
 * @returns it, and a function that closes the clients which features have opened.
 */
export const createFeatureDeps = (
  config: FeatureConfig & OfConfig & ReturnConfig,
  { features: stores, users, events: eventLog, openRateLimit }: Storage,
  given: Omit<EarlyFeatureDeps, 'config' | keyof OfConfig | keyof OfStorage>,
  resolve?: ResolveHost,
) => {
  const { publicUrl, webUrl, productName, isProduction } = config
  const { eventsKept, sessionIdle, requireEmailVerification } = config
  const { allowedOrigins, nativeOrigins, returnOrigins } = config
  const clients: HttpClient[] = []
  const deps: EarlyFeatureDeps = {
    ...given,
    config: {
      ...{ publicUrl, webUrl, productName, isProduction },
      ...{ eventsKept, sessionIdle, requireEmailVerification },
    },
    allowedOrigins,
    nativeOrigins,
    stores,
    openRateLimit,
    eventLog,
    returnTargets: new ReturnTargets({
      store: stores[storedReturnTargets.name] as ReturnTargetStore,
      origins: returnOrigins,
      clock: given.clock,
    }),
    findUser: id => users.find(id),
    findUserByEmail: async email => (await users.findByEmail(email))?.user,
    openHttpClient(options) {
      const client = new HttpClient({ ...options, resolve })
      clients.push(client)
      return client
    },
  }
  return { deps, close: () => Promise.all(clients.map(client => client.close())) }
}

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
  /** `null`: there is none. */
  readonly protectedRole: ProtectedRole | null
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
    imports: new Imports({ ...deps, store, factors, properties, clock }),
    exports: new Exports({ store, signInTables, factors, properties }),
  }
}

export type StoreServices = ReturnType<typeof createStoreServices>
