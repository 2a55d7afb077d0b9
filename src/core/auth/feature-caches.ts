/**
 * Caches of features: what they know of a user, or of an entity of their own, by its id. What an operation invalidates (`invalidates(id)`)
 * is evicted in every instance as cached users are, so a value is never older here than the user is.
 */
import type { MaybePromise } from '#base/maybe-promise'
import type { InvalidationListener } from '#storage/invalidation'
import { CacheValidity } from './cache-validity.ts'
import { InFlightLookups, Lookup } from './in-flight-lookups.ts'

export interface CacheOptions<Value> {
  /** Reads the value from the store. Every operation that changes it returns `invalidates` with the id. */
  readonly load: (id: string) => MaybePromise<Value>
  /** How many values to keep: those that were used last. */
  readonly max: number
}

export interface IdCache<Value> {
  /**
   * The value of an id; a promise only if the store has to be queried across a network. Values are shared: do not change them.
   */
  get(id: string): MaybePromise<Value>
}

export type OpenCache = <Value>(options: CacheOptions<Value>) => IdCache<Value>

/**
 * Values by id, in two generations: a value that is used moves to the newer one, and when that is half of `max`, the older one is dropped.
 * So the least used are forgotten, and a hit costs one look-up and no order of uses.
 */
class Generations<Value> {
  readonly #half: number
  #newer = new Map<string, Value>()
  #older = new Map<string, Value>()

  constructor(max: number) {
    this.#half = Math.max(1, Math.floor(max / 2))
  }

  get(id: string): Value | undefined {
    const found = this.#newer.get(id)
    if (found !== undefined) return found
    const older = this.#older.get(id)
    if (older !== undefined) this.set(id, older)
    return older
  }

  set(id: string, value: Value): void {
    if (this.#newer.size >= this.#half) {
      this.#older = this.#newer
      this.#newer = new Map()
    }
    this.#newer.set(id, value)
  }

  delete(id: string): void {
    this.#newer.delete(id)
    this.#older.delete(id)
  }

  clear(): void {
    this.#newer.clear()
    this.#older.clear()
  }
}

/** A value in an object, because a value may be `undefined`. */
interface Cached<Value> {
  readonly value: Value
}

export interface FeatureCachesDeps {
  /** Evicts what a committed change has made stale (`Engine.deliverInvalidations`). Called before a cache is used. */
  readonly deliverInvalidations: () => void
}

export class FeatureCaches implements InvalidationListener {
  readonly #deps: FeatureCachesDeps
  readonly #caches: Generations<Cached<unknown>>[] = []
  readonly #inFlightLookups = new InFlightLookups()
  readonly #validity = new CacheValidity()

  constructor(deps: FeatureCachesDeps) {
    this.#deps = deps
  }

  readonly open: OpenCache = <Value>({ load, max }: CacheOptions<Value>): IdCache<Value> => {
    const cache = new Generations<Cached<Value>>(max)
    this.#caches.push(cache)
    return {
      get: id => {
        this.#deps.deliverInvalidations()
        const cached = this.#validity.isReliable ? cache.get(id) : undefined
        return cached === undefined ? this.#load(cache, id, load) : cached.value
      },
    }
  }

  invalidate(id: string): void {
    this.#inFlightLookups.invalidate(id)
    for (const cache of this.#caches) cache.delete(id)
  }

  invalidateAll(): void {
    this.#inFlightLookups.invalidateAll()
    for (const cache of this.#caches) cache.clear()
  }

  setFeedConnected(isConnected: boolean): void {
    if (this.#validity.setFeedConnected(isConnected)) this.invalidateAll()
  }

  /** Values are kept, as notifications still evict them. */
  setFeedLate(isLate: boolean): void {
    this.#validity.setFeedLate(isLate)
  }

  closed(): void {
    this.setFeedConnected(false)
  }

  /** A value that is invalidated while it is read is read again. */
  #load<Value>(
    cache: Generations<Cached<Value>>,
    id: string,
    load: CacheOptions<Value>['load'],
  ): MaybePromise<Value> {
    const lookup = new Lookup(() => load(id))
    const onResult = (value: Value): Value => {
      if (this.#validity.isReliable) cache.set(id, { value })
      return value
    }
    const found = lookup.run()
    return found instanceof Promise
      ? this.#inFlightLookups.awaitUnchanged({ subject: id, lookup, firstRun: found, onResult })
      : onResult(found)
  }
}

/** Opens a cache that keeps nothing, for commands, which use a value once. */
export const openNoCache: OpenCache = ({ load }) => ({ get: load })
