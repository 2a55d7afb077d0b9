import { createHash } from 'node:crypto'

/** Which limits there are on how often something is asked for, and what an engine offers to count by. */

/** What a route can be limited as, for each address that asks. */
export type RateLimitName = 'sign-up' | 'sign-in' | 'password' | 'mail'

/** How many passwords may be tried on one account. Whole seconds. */
export interface LoginThrottleLimits {
  /** Wrong ones that make nobody wait. */
  readonly free: number
  /** How long they are remembered. */
  readonly memory: number
  /** What the next one costs in waiting; each one after it twice as much as the one before, up to the longest. */
  readonly firstWait: number
  readonly longestWait: number
}

/** How many mails one address is sent, whoever asks for them and for whatever account. */
export interface MailLimits {
  readonly count: number
  /** Seconds, whole. */
  readonly within: number
}

export interface RateLimits {
  /** Seconds, whole, from the first request of an address on. */
  readonly window: number
  /** Requests of one address in a window. */
  readonly perAddress: Readonly<Record<RateLimitName, number>>
  readonly loginThrottle: LoginThrottleLimits
  readonly mails: MailLimits
}

export const RATE_LIMITS: RateLimits = {
  window: 60,
  perAddress: {
    // An office or a school behind one address signs up by dozens at most.
    'sign-up': 60,
    // One hash of 10 ms each: an address alone takes 2 % of a core.
    'sign-in': 120,
    // Up to two hashes each, also where the password is right: a few accounts could keep all others from signing in.
    password: 20,
    // Each is a mail in somebody's inbox.
    mail: 20,
  },
  // Whoever mistypes does not notice; a guesser has some 15 attempts in the first quarter of an hour, then four an hour.
  loginThrottle: { free: 5, memory: 900, firstWait: 1, longestWait: 900 },
  mails: { count: 10, within: 3_600 },
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
