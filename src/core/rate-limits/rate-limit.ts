/** The counters that a store provides for rate limits, and their keys. */
import { createHash } from 'node:crypto'
import { isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'

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
