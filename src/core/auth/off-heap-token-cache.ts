/**
 * The second level of the token cache: tokens that the first has no place for, as records outside of the JavaScript heap
 * (docs/design.md, "Hot path"). Beside one level of as many objects:
 *
 * | tokens | bytes of a token: heap + outside | full collection | `authenticate` | CPU of `GET /account` |
 * |---|---|---|---|---|
 * | 100,000 | 443 + 545 instead of 1,395 | 0.16 s of CPU instead of 0.22 | 4.4 µs instead of 0.7 | |
 * | 1,000,000 | 45 + 782 instead of 1,383 | 0.6 s instead of 2.9 | 7.6 µs instead of 0.9 | 64 µs instead of 60 |
 */
import type { Principal } from './principal.ts'
import { RecordLog } from './record-log.ts'
import { keyOf } from './token-cache.ts'
import { TokenRecord } from './token-record.ts'

/** Bytes of the log for each token: a session of a user without metadata and with names of common length takes 840. */
const RECORD_SIZE = 896

/** Entries of the index that a key can have: their keys share a cache line. */
const WAYS = 16

/** Tokens for each bucket of the index, on average: then hardly any bucket has more than {@link WAYS}. */
const LOAD = 8

/** Counters of changes for each token: the more, the fewer users share one. */
const COUNTERS = 1

/** Bytes for each token of the capacity: the record, at most 4 places in the index, at most 2 counters. */
export const CACHED_TOKEN_SIZE = RECORD_SIZE + 4 * 12 + 2 * 8

const powerOfTwo = (atLeast: number): number => 2 ** Math.ceil(Math.log2(Math.max(1, atLeast)))

/** Records for each bucket in use, on average, until another one is used: those that are split last have twice as many. */
const LOAD_OF_USED = LOAD / 2

const spread = (value: number, mask: number): number => (Math.imul(value, 0x9e3779b1) >>> 8) & mask

/** Random characters at the end of a UUIDv7. */
const RANDOM_PART = 12

const hashOf = (userId: string): number => {
  let hash = 0
  for (let index = Math.max(0, userId.length - RANDOM_PART); index < userId.length; index += 1)
    hash = (Math.imul(hash, 31) + userId.charCodeAt(index)) | 0
  return hash
}

/**
 * Records by token, bounded. A record is valid while the counter of its user's changes is what it was when the record was written. Users
 * can share a counter: a change of one then also evicts the other.
 */
export class OffHeapTokenCache {
  readonly capacity: number
  readonly #log: RecordLog
  /** In buckets of {@link WAYS}. The operating system gives memory only to those in use, which are the first ones. */
  readonly #keys: Int32Array
  readonly #positions: Float64Array
  readonly #maxBuckets: number
  #buckets = 1
  #mask = 0
  /** Counters of changes, which no process can make overflow. */
  readonly #changes: Float64Array
  #replaced = 0
  #latestUse = 0

  constructor(capacity: number) {
    this.capacity = capacity
    this.#log = new RecordLog(Math.max(1, capacity) * RECORD_SIZE)
    this.#maxBuckets = powerOfTwo(capacity / LOAD)
    this.#keys = new Int32Array(this.#maxBuckets * WAYS)
    this.#positions = new Float64Array(this.#maxBuckets * WAYS)
    this.#changes = new Float64Array(powerOfTwo(capacity * COUNTERS))
  }

  /** Records, except of tokens in the first level; also of users who have changed since. */
  get size(): number {
    return this.#log.records - this.#log.hot
  }

  /** Tokens that made room for others, since the start. */
  get evictions(): number {
    return this.#log.overwritten + this.#replaced
  }

  /** Whether a token can be added without an eviction. */
  get hasRoom(): boolean {
    return this.#log.records < this.capacity && this.#log.hasRoom
  }

  /**
   * The record of a token, if its user has not changed since. @param now milliseconds since the epoch. A clock that was set back empties the
   * cache: of several tokens of a user, one could have an older last request than another.
   */
  get(token: string, now: number): TokenRecord | undefined {
    if (now < this.#latestUse) this.clear()
    this.#latestUse = now
    return this.#find(token)
  }

  #find(token: string): TokenRecord | undefined {
    const entry = this.#entryOf(keyOf(token))
    if (entry === -1) return undefined
    const record = new TokenRecord(this.#log, this.#positions[entry] as number)
    if (record.token !== token) return undefined
    if (record.userChanges === this.#changes[record.userSlot]) return record
    this.remove(record)
    return undefined
  }

  /**
   * Adds a principal whose user is current, or updates the last request of its record. @param usedAt the number of requests so far.
   * @returns `null` if there is too much metadata.
   */
  add(principal: Principal, usedAt: number): TokenRecord | null {
    if (this.capacity === 0) return null
    const record = this.#find(principal.token)
    if (record !== undefined) {
      record.isHot = false
      record.setLastRequest(principal, usedAt)
      return record
    }
    const userSlot = this.#slotOf(principal.cachedUser.user.id)
    const userChanges = this.#changes[userSlot] as number
    if (this.#log.records >= this.capacity) this.#log.removeOldest()
    const position = TokenRecord.append(this.#log, principal, { userSlot, userChanges, usedAt })
    if (position === 0) return null
    if (this.#log.records > this.#buckets * LOAD_OF_USED && this.#buckets < this.#maxBuckets) this.#split()
    const key = keyOf(principal.token)
    const entry = this.#placeOf(key)
    this.#keys[entry] = key
    this.#positions[entry] = position
    return new TokenRecord(this.#log, position)
  }

  remove(record: TokenRecord): void {
    record.isHot = false
    this.#log.remove(record.position)
    this.#positions[this.#entryOf(keyOf(record.token))] = 0
  }

  /** Must be called for every change of a user, or of a session or API key of theirs. */
  invalidate(userId: string): void {
    const slot = this.#slotOf(userId)
    this.#changes[slot] = (this.#changes[slot] as number) + 1
  }

  clear(): void {
    this.#log.clear()
  }

  #slotOf(userId: string): number {
    return spread(hashOf(userId), this.#changes.length - 1)
  }

  #firstEntryOf(key: number): number {
    const bucket = spread(key, this.#mask)
    return (bucket < this.#buckets ? bucket : bucket & (this.#mask >>> 1)) * WAYS
  }

  /** Uses another bucket, to which a part of one moves (linear hashing): the index grows with the records, and never all at once. */
  #split(): void {
    const bucket = this.#buckets
    this.#buckets += 1
    if (bucket > this.#mask) this.#mask = 2 * this.#mask + 1
    const first = (bucket & (this.#mask >>> 1)) * WAYS
    for (let way = 0; way < WAYS; way += 1) {
      const key = this.#keys[first + way] as number
      if (spread(key, this.#mask) !== bucket) continue
      this.#keys[bucket * WAYS + way] = key
      this.#positions[bucket * WAYS + way] = this.#positions[first + way] as number
      this.#positions[first + way] = 0
    }
  }

  #entryOf(key: number): number {
    const first = this.#firstEntryOf(key)
    for (let entry = first; entry < first + WAYS; entry += 1)
      if (this.#keys[entry] === key && this.#log.has(this.#positions[entry] as number)) return entry
    return -1
  }

  /** A place in the index for a new record: of two tokens with the same key, and in a full bucket, the oldest is replaced. */
  #placeOf(key: number): number {
    const first = this.#firstEntryOf(key)
    let oldest = this.#entryOf(key)
    if (oldest === -1) {
      oldest = first
      for (let entry = first + 1; entry < first + WAYS; entry += 1)
        if ((this.#positions[entry] as number) < (this.#positions[oldest] as number)) oldest = entry
    }
    const position = this.#positions[oldest] as number
    if (this.#log.has(position)) {
      const record = new TokenRecord(this.#log, position)
      if (!record.isHot) this.#replaced += 1
      record.isHot = false
      this.#log.remove(position)
    }
    return oldest
  }
}
