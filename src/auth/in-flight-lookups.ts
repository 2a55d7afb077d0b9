/** Queries of sessions, API keys and admin keys that are in flight, and their repetition after a change. */
import type { MaybePromise } from '../maybe-promise.ts'

type Query<Found> = (onStart: () => void) => MaybePromise<Found>

/** A query to the store, and whether something has changed since it started. */
export class Lookup<Found> {
  isStale = false
  /** When the query started, in milliseconds of `performance.now()`. */
  queriedAt = 0
  /** The users and admin keys that have changed since then, for a lookup whose owner is not known before its result. */
  readonly changedOwners = new Set<string>()
  readonly #query: Query<Found>
  readonly #onStart = () => {
    this.isStale = false
    this.changedOwners.clear()
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

/**
 * The lookups that wait for a store across a network. A lookup is repeated if its owner changes meanwhile: the user of a session or
 * API key, or the admin key itself.
 */
export class InFlightLookups {
  readonly #byOwner = new Map<string, Set<Lookup<unknown>>>()
  readonly #ofUnknownOwners = new Set<Lookup<unknown>>()

  invalidate(ownerId: string): void {
    markStale(this.#byOwner.get(ownerId))
    for (const lookup of this.#ofUnknownOwners) lookup.changedOwners.add(ownerId)
  }

  invalidateAll(): void {
    for (const lookups of this.#byOwner.values()) markStale(lookups)
    markStale(this.#ofUnknownOwners)
  }

  /**
   * Waits for a result that includes every notified change of the owner. If a change is notified while the query runs, the
   * result may not include it, and the query is repeated. If it is notified while the query waits for a connection, the
   * result includes it. Repeating the query in that case too would never end behind a long queue, if changes arrive faster
   * than the queue moves.
   * @param first the promise of the lookup's first run.
   * @param use called with the result before another change can be notified.
   */
  async awaitUnchanged<Found, Result>(
    ownerId: string,
    lookup: Lookup<Found>,
    first: Promise<Found>,
    use: (found: Found) => Result,
  ): Promise<Result> {
    const ofOwner = this.#byOwner.get(ownerId) ?? new Set()
    this.#byOwner.set(ownerId, ofOwner.add(lookup))
    try {
      let found = await first
      while (lookup.isStale) found = await lookup.run()
      return use(found)
    } finally {
      ofOwner.delete(lookup)
      if (ofOwner.size === 0) this.#byOwner.delete(ownerId)
    }
  }

  /** As {@link awaitUnchanged}, for a lookup whose result names the owner. @param ownerOf `undefined` if nothing was found. */
  async awaitUnchangedOwner<Found, Result>(
    lookup: Lookup<Found>,
    first: Promise<Found>,
    ownerOf: (found: Found) => string | undefined,
    use: (found: Found) => Result,
  ): Promise<Result> {
    this.#ofUnknownOwners.add(lookup)
    const hasChanged = (found: Found): boolean => {
      const ownerId = ownerOf(found)
      return lookup.isStale || (ownerId !== undefined && lookup.changedOwners.has(ownerId))
    }
    try {
      let found = await first
      while (hasChanged(found)) found = await lookup.run()
      return use(found)
    } finally {
      this.#ofUnknownOwners.delete(lookup)
    }
  }
}
