/** The counters that a store provides for rate limits. */

export interface Usage {
  /** Whether the limit is kept. */
  readonly allowed: boolean
  readonly remaining: number
  /** Until the window ends, whole and at least 1. */
  readonly seconds: number
}

/** A counter for each key. Never fails: while instances cannot count together, each counts for itself. */
export interface RateLimit {
  /** Counts one. @param seconds the length of a window that begins now; default: the limit's. */
  consume(key: string, seconds?: number): Promise<Usage>
  /** Subtracts one. */
  refund(key: string): Promise<void>
  /** The current count. */
  used(key: string): Promise<number>
  /** Begins a window of `seconds` with a count of `used`. */
  set(key: string, used: number, seconds: number): Promise<void>
  delete(key: string): Promise<void>
}

export interface RateLimitOptions {
  /** Limits with the same name share their counters. */
  readonly name: string
  readonly points: number
  /** The length of a window: whole, from the first count on. */
  readonly seconds: number
  /** Counts never decrease, so an instance refuses a key at the limit without querying the store, until the window ends. */
  readonly final?: boolean
}

export type OpenRateLimit = (options: RateLimitOptions) => RateLimit
