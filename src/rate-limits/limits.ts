/** Every rate limit, declared once; and the counters that a store provides for them. */
import { createHash } from 'node:crypto'

export interface WindowLimit {
  /** How much is allowed within a window: requests, or mails. */
  readonly points: number
  /** The length of a window, whole seconds from the first request or mail on. */
  readonly seconds: number
}

/** Times in whole seconds. */
export interface LoginThrottleLimits {
  /** Wrong attempts without a wait. */
  readonly free: number
  /** How long wrong attempts count. */
  readonly memory: number
  /** The wait before the next attempt; it doubles with each further one, up to `longestWait`. */
  readonly firstWait: number
  readonly longestWait: number
}

const PER_ADDRESS = {
  // An office or a school behind one address signs up by dozens at most.
  'sign-up': { points: 60, seconds: 60 },
  // One hash of 10 ms each: an address alone takes 2 % of a core.
  'sign-in': { points: 120, seconds: 60 },
  // Up to two hashes each, also with the right password: a few accounts could keep all others from signing in.
  password: { points: 20, seconds: 60 },
  // Each sends a mail.
  mail: { points: 20, seconds: 60 },
} satisfies Record<string, WindowLimit>

/** A limit that a route can name. */
export type RateLimitName = keyof typeof PER_ADDRESS

export interface RateLimits {
  /** Requests of one client address. A route names its limit with `config.rateLimit`; routes of one name count together. */
  readonly perAddress: Readonly<Record<RateLimitName, WindowLimit>>
  /** Mails to one recipient, whoever requests them and for whatever account. Each kind of mail states whether it is limited. */
  readonly perRecipient: WindowLimit
  /** Password attempts on one account. */
  readonly loginThrottle: LoginThrottleLimits
}

export const RATE_LIMITS: RateLimits = {
  perAddress: PER_ADDRESS,
  perRecipient: { points: 10, seconds: 3_600 },
  // A user who mistypes does not notice; an attacker has some 15 attempts in the first 15 minutes, then four an hour.
  loginThrottle: { free: 5, memory: 900, firstWait: 1, longestWait: 900 },
}

/** 128 bits: neither memory nor the table of counts holds e-mails. */
const DIGEST_LENGTH = 22

/** What an e-mail is counted by. */
export const emailKey = (email: string): string =>
  createHash('sha256').update(email).digest('base64url').slice(0, DIGEST_LENGTH)

export interface Usage {
  /** Whether what was counted is within the limit. */
  readonly allowed: boolean
  readonly remaining: number
  /** Until it is counted anew, whole and at least 1. */
  readonly seconds: number
}

/** Counts by key. Never fails: where instances cannot count together, each counts for itself. */
export interface RateLimit {
  /** @param seconds in place of the limit's own, for a window that begins now. */
  consume(key: string, seconds?: number): Promise<Usage>
  /** Takes one back that was consumed. */
  giveBack(key: string): Promise<void>
  /** How many are counted now. */
  used(key: string): Promise<number>
  /** Begins a window of so many seconds in which so many are counted already. */
  set(key: string, used: number, seconds: number): Promise<void>
  delete(key: string): Promise<void>
}

export interface RateLimitOptions {
  /** Limits of the same name count together. */
  readonly name: string
  readonly points: number
  /** Whole, from the first that is counted on. */
  readonly seconds: number
  /** Nothing is taken back: whom an instance has refused it refuses by itself until the window ends. */
  readonly final?: boolean
}

export type OpenRateLimit = (options: RateLimitOptions) => RateLimit
