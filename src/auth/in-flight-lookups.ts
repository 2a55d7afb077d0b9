/** Queries of sessions and API keys that are in flight, and their repetition after a change. */
import type { MaybePromise } from '../maybe-promise.ts'

type Query<Found> = (onStart: () => void) => MaybePromise<Found>

/** A query to the store, and whether something has changed since it started. */
export class Lookup<Found> {
  isStale = false
  /** When the query started, in milliseconds of `performance.now()`. */
  queriedAt = 0
  /** The users that have changed since then, for a lookup whose user is not known before its result. */
  readonly changedUsers = new Set<string>()
  readonly #query: Query<Found>
  readonly #onStart = () => {
    this.isStale = false
    this.changedUsers.clear()
    this.queriedAt = performance.now()
  }

  /** @param query calls its parameter when it starts in the store. Its result includes every earlier change. */
  constructor(query: Query<Found>) {
    this.#query = query
  }

  run(): MaybePromise<Found> {
    this.#onStart()
    return this.#query(this.#onStart)
  }
}

const markStale = (lookups: Iterable<Lookup<unknown>> = []): void => {
  for (const lookup of lookups) lookup.isStale = true
}

/** The lookups that wait for a store across a network. A lookup is repeated if its user changes meanwhile. */
export class InFlightLookups {
  readonly #byUser = new Map<string, Set<Lookup<unknown>>>()
  readonly #ofUnknownUsers = new Set<Lookup<unknown>>()

  invalidateUser(userId: string): void {
    markStale(this.#byUser.get(userId))
    for (const lookup of this.#ofUnknownUsers) lookup.changedUsers.add(userId)
  }

  invalidateAll(): void {
    for (const lookups of this.#byUser.values()) markStale(lookups)
    markStale(this.#ofUnknownUsers)
  }

  /**
   * Waits for a result that includes every notified change of the user. If a change is notified while the query runs, the
   * result may not include it, and the query is repeated. If it is notified while the query waits for a connection, the
   * result includes it. Repeating the query in that case too would never end behind a long queue, if changes arrive faster
   * than the queue moves.
   * @param first the promise of the lookup's first run.
   * @param use called with the result before another change can be notified.
   */
  async awaitUnchanged<Found, Result>(
    userId: string,
    lookup: Lookup<Found>,
    first: Promise<Found>,
    use: (found: Found) => Result,
  ): Promise<Result> {
    const ofUser = this.#byUser.get(userId) ?? new Set()
    this.#byUser.set(userId, ofUser.add(lookup))
    try {
      let found = await first
      while (lookup.isStale) found = await lookup.run()
      return use(found)
    } finally {
      ofUser.delete(lookup)
      if (ofUser.size === 0) this.#byUser.delete(userId)
    }
  }

  /** As {@link awaitUnchanged}, for a lookup whose result names the user. @param userOf `undefined` if nothing was found. */
  async awaitUnchangedUser<Found, Result>(
    lookup: Lookup<Found>,
    first: Promise<Found>,
    userOf: (found: Found) => string | undefined,
    use: (found: Found) => Result,
  ): Promise<Result> {
    this.#ofUnknownUsers.add(lookup)
    const hasChanged = (found: Found): boolean => {
      const userId = userOf(found)
      return lookup.isStale || (userId !== undefined && lookup.changedUsers.has(userId))
    }
    try {
      let found = await first
      while (hasChanged(found)) found = await lookup.run()
      return use(found)
    } finally {
      this.#ofUnknownUsers.delete(lookup)
    }
  }
}
