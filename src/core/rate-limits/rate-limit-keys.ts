/** The keys of rate limits. */
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
