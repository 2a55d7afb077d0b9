/** Rate limits that this process counts in memory, and the adapter from the library's limiters to `RateLimit`. */
import type { RateLimiterAbstract } from 'rate-limiter-flexible'
import RateLimiterMemory from 'rate-limiter-flexible/lib/RateLimiterMemory.js'
import RateLimiterRes from 'rate-limiter-flexible/lib/RateLimiterRes.js'
import type { RateLimit, RateLimitOptions, Usage } from './rate-limit.ts'

/** The most keys of a limiter: clients choose them, and each takes memory for the library's timer. */
const MAX_KEYS = 50_000

type Key = string | number

/** Evicts the least recently counted key if there are too many. */
class BoundedMemory extends RateLimiterMemory {
  readonly #maxKeys: number
  /** The least recently counted first. */
  readonly #keys = new Set<Key>()

  constructor({ name, points, seconds }: RateLimitOptions, maxKeys: number) {
    super({ keyPrefix: name, points, duration: seconds })
    this.#maxKeys = maxKeys
  }

  override consume(key: Key, points?: number, options?: object): Promise<RateLimiterRes> {
    this.#touch(key)
    return super.consume(key, points, options)
  }

  override reward(key: Key, points?: number, options?: object): Promise<RateLimiterRes> {
    this.#touch(key)
    return super.reward(key, points, options)
  }

  override set(key: Key, points: number, seconds: number): Promise<RateLimiterRes> {
    this.#touch(key)
    return super.set(key, points, seconds)
  }

  override delete(key: Key): Promise<boolean> {
    this.#keys.delete(key)
    return super.delete(key)
  }

  #touch(key: Key): void {
    if (!this.#keys.delete(key) && this.#keys.size >= this.#maxKeys) {
      const [oldest] = this.#keys
      if (oldest !== undefined) void this.delete(oldest)
    }
    this.#keys.add(key)
  }
}

/** A limiter that counts in this process only. */
export const memoryLimiter = (options: RateLimitOptions, maxKeys = MAX_KEYS): RateLimiterAbstract =>
  new BoundedMemory(options, maxKeys)

const usage = (allowed: boolean, { remainingPoints, msBeforeNext }: RateLimiterRes): Usage => ({
  allowed,
  remaining: remainingPoints,
  seconds: Math.max(1, Math.ceil(msBeforeNext / 1_000)),
})

/** Adapts a limiter of the library. */
export const fromLimiter = (limiter: RateLimiterAbstract): RateLimit => ({
  async consume(key, seconds) {
    try {
      const options = seconds === undefined ? {} : { customDuration: seconds }
      return usage(true, await limiter.consume(key, 1, options))
    } catch (rejection) {
      if (!(rejection instanceof RateLimiterRes)) throw rejection
      return usage(false, rejection)
    }
  },
  async refund(key) {
    await limiter.reward(key, 1)
  },
  async used(key) {
    return (await limiter.get(key))?.consumedPoints ?? 0
  },
  async set(key, used, seconds) {
    await limiter.set(key, used, seconds)
  },
  async delete(key) {
    await limiter.delete(key)
  },
})
