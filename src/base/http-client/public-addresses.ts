/**
 * Keeps requests of the service away from the networks that it runs in (server-side request forgery, OWASP ASVS 1.3.6). A name is
 * checked at the connection, which uses the checked address: a second look-up could return another one.
 */
import type { LookupAddress } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'

export type ResolveHost = (hostname: string) => Promise<readonly LookupAddress[]>

/** Milliseconds until a name server that does not respond is asked again, and how often one is asked. */
const QUESTION = { timeout: 2_000, tries: 2 }

/**
 * Asks the name servers of the machine. `dns.lookup` would use a thread of the process for as long as a name takes, so that a few slow names
 * delay all others.
 * @throws {Error} if neither an IPv4 nor an IPv6 address is found.
 */
export const resolveHost: ResolveHost = async hostname => {
  const resolver = new Resolver(QUESTION)
  const found = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
  const addresses = found.flatMap((each, index) =>
    each.status === 'fulfilled' ? each.value.map(address => ({ address, family: index === 0 ? 4 : 6 })) : [],
  )
  const [failure] = found.filter(each => each.status === 'rejected')
  if (addresses.length === 0 && failure !== undefined) throw failure.reason
  return addresses
}

/** An address of the host is not public. The message does not name it: a name of an internal network would reveal what it is there. */
export class BlockedAddressError extends Error {
  override readonly name = 'BlockedAddressError'
}

/** Networks whose addresses have an IPv4 address in their last 32 bits: IPv4-mapped (RFC 4291 §2.5.5.2), and NAT64 (RFC 6052 §2.1). */
const WITH_IPV4 = ['::ffff:0:0/96', '64:ff9b::/96'].map(network => ipaddr.IPv6.parseCIDR(network))

/** Every public IPv6 address is in it (RFC 4291 §2.4). What lies outside is unassigned. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3')

/** Public addresses that clouds use for their virtual machines: the agent of Azure. */
const CLOUD_ADDRESSES = ['168.63.129.16']

const isPublicIPv4 = (address: ipaddr.IPv4): boolean =>
  address.range() === 'unicast' && !CLOUD_ADDRESSES.includes(address.toString())

/** @param text a valid IPv4 or IPv6 address. */
export const isPublicAddress = (text: string): boolean => {
  const address = ipaddr.parse(text)
  if (address instanceof ipaddr.IPv4) return isPublicIPv4(address)
  if (WITH_IPV4.some(network => address.match(network)))
    return isPublicIPv4(new ipaddr.IPv4(address.toByteArray().slice(12)))
  return address.range() === 'unicast' && address.match(GLOBAL_UNICAST)
}

/** @returns the address that is the host of a URL, without brackets; `null` for a name. */
export const addressIn = (hostname: string): string | null => {
  const text = hostname.replace(/^\[(.*)\]$/, '$1')
  return isIP(text) === 0 ? null : text
}

/**
 * @returns the addresses of a name, all of which are public.
 * @throws {BlockedAddressError} if one is not: a name with a public and a private address serves attacks only; errors of `resolve`.
 */
export const resolvePublic = async (
  hostname: string,
  resolve: ResolveHost,
): Promise<readonly LookupAddress[]> => {
  const addresses = await resolve(hostname)
  if (addresses.length === 0 || !addresses.every(({ address }) => isPublicAddress(address)))
    throw new BlockedAddressError('An address of the host is not public')
  return addresses
}

/** A `lookup` for sockets that connect to public addresses only. Sockets do not call it for a host that is an address. */
export const publicLookup =
  (resolve: ResolveHost): LookupFunction =>
  (hostname, { all }, done) => {
    resolvePublic(hostname, resolve).then(
      addresses => {
        const [{ address, family } = { address: '', family: 4 }] = addresses
        if (all) done(null, [...addresses])
        else done(null, address, family)
      },
      (error: NodeJS.ErrnoException) => done(error, ''),
    )
  }
