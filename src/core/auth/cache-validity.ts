/** Whether caches may be used, depending on the invalidation feed. */

/**
 * Milliseconds for which a query's result may be used while notifications are not received in time: long enough for the gate's
 * `preHandler` run.
 */
const RESULT_LIFETIME = 100

/**
 * Whether cached state may be used, depending on whether notifications of changes are received. Timestamps are milliseconds of
 * `performance.now()`.
 */
export class CacheValidity {
  /** Whether notifications are received in time, so that the cache is as current as the store. */
  isReliable = false
  #isConnected = false
  #invalidatedAt = 0

  /** @returns whether the cache must be emptied, because notifications may have been missed. */
  setFeedConnected(isConnected: boolean): boolean {
    const mayHaveMissed = isConnected || this.#isConnected
    this.#isConnected = this.isReliable = isConnected
    return mayHaveMissed
  }

  setFeedLate(isLate: boolean): void {
    this.isReliable = this.#isConnected && !isLate
  }

  /** Must be called for every invalidation. */
  recordInvalidation(): void {
    this.#invalidatedAt = performance.now()
  }

  /** Whether the result of a query may still be used: it is recent, and nothing was invalidated since. */
  isRecent(queriedAt: number): boolean {
    return queriedAt > this.#invalidatedAt && performance.now() - queriedAt < RESULT_LIFETIME
  }
}
