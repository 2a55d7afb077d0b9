/** Queries of sessions, API keys and admin keys that are in flight, and their repetition after a change. */
import type { MaybePromise } from '#base/maybe-promise'

type Query<Found> = (onStart: () => void) => MaybePromise<Found>

export class Lookup<Found> {
  isStale = false
  /** When the query started, in milliseconds of `performance.now()`. */
  queriedAt = 0
  readonly #query: Query<Found>
  readonly #onStart = () => {
    this.isStale = false
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

/** Changes that are remembered. Beyond it, the lookups that need them are repeated. */
const MAX_CHANGES = 10_000

const markStale = (lookups: Iterable<Lookup<unknown>> = []): void => {
  for (const lookup of lookups) lookup.isStale = true
}

interface WaitingLookup<Found, Result> {
  /** The id of the owner, or the digest of a key, whose owner only the result names. */
  readonly subject: string
  readonly lookup: Lookup<Found>
  readonly firstRun: Promise<Found>
  /** Called with the result before another change can be notified. */
  readonly onResult: (found: Found) => Result
  /** The owner that the result names, for a digest. */
  readonly ownerOf?: (found: Found) => string | undefined
  /** Whether a later query has found a newer state of the owner, whose change may not be notified yet. */
  readonly isOutdated?: (found: Found) => boolean
}

/**
 * The lookups that wait for a store across a network. A lookup is repeated if its owner changes meanwhile: the user of a session or
 * API key, or the admin key itself.
 */
export class InFlightLookups {
  /** By the id of the owner, or by the digest of a key. */
  readonly #bySubject = new Map<string, Set<Lookup<unknown>>>()
  /** The lookups whose owner only the result names. */
  readonly #ofUnknownOwners = new Set<Lookup<unknown>>()
  /** When owners changed, as long as there are such lookups. One map for all: anonymous clients can make thousands wait. */
  readonly #changes = new Map<string, number>()

  invalidate(ownerId: string): void {
    markStale(this.#bySubject.get(ownerId))
    if (this.#ofUnknownOwners.size === 0) return
    if (this.#changes.size === MAX_CHANGES) this.#forgetChanges()
    this.#changes.set(ownerId, performance.now())
  }

  /** Repeats the lookups of a key that was not found meanwhile: they must not find it any more. */
  invalidateKey(digest: string): void {
    markStale(this.#bySubject.get(digest))
  }

  invalidateAll(): void {
    for (const lookups of this.#bySubject.values()) markStale(lookups)
  }

  #forgetChanges(): void {
    markStale(this.#ofUnknownOwners)
    this.#changes.clear()
  }

  /**
   * Repeats the query if a change of the owner is notified while it runs. One that is notified while the query waits for a connection is in
   * its result: repeating that too would never end behind a long queue.
   */
  async awaitUnchanged<Found, Result>({
    subject,
    lookup,
    firstRun,
    onResult,
    ownerOf,
    isOutdated,
  }: WaitingLookup<Found, Result>): Promise<Result> {
    const ofSubject = this.#bySubject.get(subject) ?? new Set()
    this.#bySubject.set(subject, ofSubject.add(lookup))
    if (ownerOf !== undefined) this.#ofUnknownOwners.add(lookup)
    const hasChanged = (found: Found): boolean => {
      const owner = ownerOf?.(found)
      const changedAt = owner === undefined ? undefined : this.#changes.get(owner)
      return lookup.isStale || (changedAt !== undefined && changedAt >= lookup.queriedAt)
    }
    try {
      let found = await firstRun
      // Once: after a failover that has lost a change, the older state stays.
      if (isOutdated?.(found)) found = await lookup.run()
      while (hasChanged(found)) found = await lookup.run()
      return onResult(found)
    } finally {
      this.#ofUnknownOwners.delete(lookup)
      if (this.#ofUnknownOwners.size === 0) this.#changes.clear()
      ofSubject.delete(lookup)
      if (ofSubject.size === 0) this.#bySubject.delete(subject)
    }
  }
}
