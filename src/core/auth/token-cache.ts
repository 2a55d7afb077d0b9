/** The first level of the token cache, and its capacity, which the heap limit bounds: a small heap must not end the process. */
import { getHeapStatistics } from 'node:v8'
import { heapSizeOf } from '../users/metadata.ts'
import type { User } from '../users/user.ts'
import type { Principal } from './principal.ts'
import type { UserCache } from './user-cache.ts'

const MIB = 2 ** 20

/** Part of the heap limit: three semi-spaces of 64 MiB. */
export const YOUNG_GENERATION = 192 * MIB

/** The heap without any cache, during garbage collection. */
const SERVICE_HEAP = 48 * MIB

/** The share of the rest for cached tokens: requests, and unwritten last requests, need the other half. */
const CACHE_SHARE = 1 / 2

/** Bytes of a cached token on the heap, with its session and its user without metadata: 1,261 were measured. */
const TOKEN_SIZE = 1_300

const MIN_TOKENS = 1_000
const MAX_TOKENS = 100_000

/** Tokens that fit into the heap: 100,000, or fewer if it is limited to less than about 300 MiB. @param heapLimit bytes. */
export const heapTokenCapacity = (heapLimit = getHeapStatistics().heap_size_limit): number => {
  const room = (heapLimit - YOUNG_GENERATION - SERVICE_HEAP) * CACHE_SHARE
  return Math.min(MAX_TOKENS, Math.max(MIN_TOKENS, Math.floor(room / TOKEN_SIZE)))
}

const MAX_CANDIDATES = 8

const KEY_LENGTH = 8

/** A key of 32 bits from 44 random bits of the signature. Two given tokens share a key with a probability of 1 in four billion. */
export const keyOf = (token: string): number => {
  let key = 0
  for (let index = token.length - KEY_LENGTH; index < token.length; index += 1)
    key = (Math.imul(key, 31) + token.charCodeAt(index)) | 0
  return key
}

/** 1, and more with metadata, so that users cannot fill the heap with theirs. */
const weightOf = (user: User): number =>
  1 + Math.ceil((heapSizeOf(user.userMetadata) + heapSizeOf(user.appMetadata)) / TOKEN_SIZE)

/**
 * Principals by token, bounded. All of a user refer to one record, so that a change reaches them at once. The key is a number made of the
 * signature, which costs no string hash; every hit compares the whole token. A token replaces another one with the same key.
 */
export class TokenCache {
  readonly capacity: number
  readonly #byKey = new Map<number, Principal>()
  readonly #users: UserCache
  readonly #onEvict: (principal: Principal) => void
  #weight = 0

  /** @param onEvict called before the user of an evicted token is removed from the cache of users. */
  constructor(capacity: number, users: UserCache, onEvict: (principal: Principal) => void) {
    this.capacity = capacity
    this.#users = users
    this.#onEvict = onEvict
  }

  get size(): number {
    return this.#byKey.size
  }

  get(token: string): Principal | undefined {
    const principal = this.#byKey.get(keyOf(token))
    return principal?.token === token ? principal : undefined
  }

  /** Whether a token of a user without metadata can be added without an eviction. */
  get hasRoom(): boolean {
    return this.#weight < this.capacity
  }

  hasRoomFor(user: User): boolean {
    return this.#weight + weightOf(user) <= this.capacity
  }

  add(principal: Principal): void {
    const key = keyOf(principal.token)
    // First, so that the record stays in the cache if another token of the user is dropped or evicted.
    principal.cachedUser.tokens += 1
    this.#users.add(principal.cachedUser)
    const earlier = this.#byKey.get(key)
    if (earlier !== undefined) this.drop(earlier)
    const weight = weightOf(principal.cachedUser.user)
    while (this.#byKey.size > 0 && this.#weight + weight > this.capacity) this.#evictOne()
    this.#weight += weight
    this.#byKey.set(key, principal)
  }

  drop(principal: Principal): void {
    this.#byKey.delete(keyOf(principal.token))
    this.#release(principal)
  }

  clear(): void {
    this.#byKey.clear()
    this.#weight = 0
  }

  /**
   * Evicts the oldest token that was not used since it was last considered: the clock algorithm (second chance), close to LRU, where a hit
   * moves nothing. The search is bounded, so that a request never scans the whole cache.
   */
  #evictOne(): void {
    let candidates = MAX_CANDIDATES
    for (const [key, principal] of this.#byKey) {
      this.#byKey.delete(key)
      candidates -= 1
      if (!principal.used || !principal.cachedUser.current || candidates === 0) {
        this.#onEvict(principal)
        this.#release(principal)
        return
      }
      principal.used = false
      this.#byKey.set(key, principal)
    }
  }

  #release(principal: Principal): void {
    const { cachedUser } = principal
    this.#weight -= weightOf(cachedUser.user)
    cachedUser.tokens -= 1
    if (cachedUser.tokens === 0 && cachedUser.current) this.#users.remove(cachedUser)
  }
}
