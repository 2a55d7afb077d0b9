/** What every engine gives the store of an application. It runs statements and knows none of its tables. */
import type { MaybePromise } from '#base/maybe-promise'
import type { InvalidationListener } from './invalidation.ts'
import type { Query } from './operations/operation.ts'
import type { OpenRateLimit } from './rate-limit.ts'
import type { StorageStatistics } from './statistics.ts'

export interface Engine {
  read<Result>(query: Query<Result>): MaybePromise<Result>
  /**
   * Runs the operation with a name in one transaction. Evicts and notifies what its write states, before the promise resolves.
   * @throws {ServiceError} `storeUnavailable`, `overloaded`; `internalError` for a mistake in the operation.
   */
  write(name: string, args: readonly unknown[]): Promise<unknown>
  /** Counts in a table on PostgreSQL, else in memory. */
  readonly openRateLimit: OpenRateLimit
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
