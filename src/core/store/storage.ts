/** The store: one interface for every engine. */
import type { InvalidationListener } from '#storage/invalidation'
import type { OpenRateLimit } from '#storage/rate-limit'
import type { StorageStatistics } from '#storage/statistics'
import type { LastRequestStore } from '../auth/last-requests.ts'
import type {
  AccountStore,
  AdminKeyStore,
  ApiKeyStore,
  BulkUserStore,
  CleanUpStore,
  EmailTokenStore,
  EventStore,
  SessionStore,
  UserStore,
} from './stores.ts'

/** What every engine implements (docs/design.md, "Storage"). One suite of tests, `test/storage`, runs against all of them. */
export interface Storage {
  readonly users: UserStore
  readonly accounts: AccountStore
  readonly sessions: SessionStore
  readonly apiKeys: ApiKeyStore
  readonly adminKeys: AdminKeyStore
  readonly emailTokens: EmailTokenStore
  readonly lastRequests: LastRequestStore
  readonly events: EventStore
  /** By the name of the feature: its `FeatureStore`. */
  readonly features: Readonly<Record<string, object>>
  /** Counts in a table on PostgreSQL, else in memory. */
  readonly openRateLimit: OpenRateLimit
  readonly bulkUsers: BulkUserStore
  readonly cleanUp: CleanUpStore
  /** Notifies one listener, which replaces the previous one, of invalidations and of the state of their feed. */
  subscribe(listener: InvalidationListener): void
  /**
   * Invalidates at once what a committed change has made stale in this process. Caches call it before they are used: on SQLite,
   * another event loop may have made the change.
   */
  deliverInvalidations(): void
  /** @throws {Error} if the store cannot be reached. */
  ping(): Promise<void>
  close(): Promise<void>
  /** For metrics. */
  readonly statistics: () => StorageStatistics
}
