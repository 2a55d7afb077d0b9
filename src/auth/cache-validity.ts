/** Whether caches may be used, depending on the invalidation feed. */

/** Milliseconds for which a query's result may be used while notifications are not received in time: long enough for the gate's `preHandler` run. */
const RESULT_LIFETIME = 100

/**
 * Whether cached state may be used, depending on whether notifications of changes are received. Timestamps are milliseconds of
 * `performance.now()`.
 */
export class CacheValidity {
  /** Whether notifications are received in time, so that the cache is as current as the store. */
  isReliable = false
  #listening = false
  #changedAt = 0

  /** @returns whether the cache must be emptied, because notifications may have been missed. */
  listening(isListening: boolean): boolean {
    const mayHaveMissed = isListening || this.#listening
    this.#listening = this.isReliable = isListening
    return mayHaveMissed
  }

  late(isLate: boolean): void {
    this.isReliable = this.#listening && !isLate
  }

  /** Must be called for every change that is notified. */
  changed(): void {
    this.#changedAt = performance.now()
  }

  /** Whether the result of a query may still be used: it is recent, and no change has been notified since. */
  isRecent(queriedAt: number): boolean {
    return queriedAt > this.#changedAt && performance.now() - queriedAt < RESULT_LIFETIME
  }
}
