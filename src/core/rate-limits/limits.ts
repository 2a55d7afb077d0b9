/** The rate limits of the core, and the keys of counters. Features declare their limits. */
import { createHash } from 'node:crypto'
import { isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'

export interface WindowLimit {
  /** Requests, or mails, within a window. */
  readonly points: number
  /** The length of a window, from the first request or mail on. */
  readonly seconds: number
}

/** Times in whole seconds. */
export interface LoginThrottleLimits {
  readonly freeAttempts: number
  /** How long wrong attempts count. */
  readonly window: number
  /** The delay before the next attempt; it doubles with each further one, up to `maxDelay`. */
  readonly initialDelay: number
  readonly maxDelay: number
}

const PER_ADDRESS = {
  // One hash each: an address alone takes a small part of a core.
  'sign-in': { points: 120, seconds: 60 },
  // Up to two hashes each, also with the right password: a few accounts could keep all others from signing in.
  password: { points: 20, seconds: 60 },
  // Each sends a mail to an address that the client chooses, or a link.
  mail: { points: 20, seconds: 60 },
} satisfies Record<string, WindowLimit>

/** The name of the limit on writes of a user in headers and metrics. */
export const WRITE_LIMIT = 'write'

/** The names of counters that limit no route, in one namespace with the limits of routes. */
export const COUNTERS = [
  'mails',
  'clean-up',
  'test-mails',
  'throttle-events',
  'login-attempts',
  'login-lock',
  'login-lock-count',
  'user-attempts',
  'user-lock',
  'user-lock-count',
  'network-lock',
  'network-lock-count',
] as const

export interface RateLimits {
  /** Requests of one client address. A route names its limit with `config.rateLimit`; routes of one name count together. */
  readonly perAddress: Readonly<Record<string, WindowLimit>>
  /** Changes that one user makes, from all addresses and with all credentials: each is an event, which is kept for a year. */
  readonly writesPerUser: WindowLimit
  /** Mails to one recipient, for any account and from any client. Each kind of mail states whether it is limited. */
  readonly perRecipient: WindowLimit
  readonly loginThrottle: LoginThrottleLimits
}

export const RATE_LIMITS: RateLimits = {
  perAddress: PER_ADDRESS,
  writesPerUser: { points: 120, seconds: 60 },
  perRecipient: { points: 10, seconds: 3_600 },
  // A user who mistypes does not notice; an attacker has some 15 attempts in the first 15 minutes, then four an hour.
  loginThrottle: { freeAttempts: 5, window: 900, initialDelay: 1, maxDelay: 900 },
}

/** A key of 128 bits, so that neither memory nor a table contains the e-mail, or the network of a user. */
export const digestKey = (text: string): string =>
  createHash('sha256').update(text).digest('base64url').slice(0, 22)

/**
 * @param address in canonical form.
 * @returns the IPv4 address, or the /64 of an IPv6 address (what one subscriber gets); an empty string for `null`.
 */
export const clientNetwork = (address: string | null): string => {
  if (address === null || isIPv4(address)) return address ?? ''
  const groups = ipaddr.IPv6.parse(address).parts.slice(0, 4)
  return `${groups.map(group => group.toString(16)).join(':')}::/64`
}
