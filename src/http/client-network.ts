/** Where a request comes from: an IP address in one spelling, and the network by which its client is counted. */
import { isIPv4, isIPv6 } from 'node:net'

/** Some proxies write the port behind the address, which is another one with every connection. */
const WITH_PORT = /^(?:\[([^\]]*)\]|(\d+\.\d+\.\d+\.\d+))(?::\d+)?$/

/** The eight groups of a canonical IPv6 address, each as a number. */
const groupsOf = (canonical: string): number[] => {
  const [before = [], after = []] = canonical
    .split('::')
    .map(half => (half === '' ? [] : half.split(':').map(group => Number.parseInt(group, 16))))
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after]
}

/** `::ffff:a.b.c.d` (RFC 4291 §2.5.5.2), as a socket for both shows a client that came by IPv4, in the URL parser's spelling. */
const MAPPED_IPV4 = /^::ffff:([\da-f]{1,4}):([\da-f]{1,4})$/

/**
 * @param ip as Fastify gives it, which a trusted proxy may have written; `undefined` when the connection is gone already.
 * @returns IPv4 in dotted form, also where it is mapped to IPv6; IPv6 as RFC 5952 spells it. Without port and without zone
 * (RFC 4007 §11), which names an interface of this machine. `null` when it is no IP address.
 */
export const clientAddress = (ip: string | undefined): string | null => {
  if (ip === undefined) return null
  if (isIPv4(ip)) return ip
  const [, bracketed, dotted] = WITH_PORT.exec(ip) ?? []
  const address = (bracketed ?? dotted ?? ip).split('%', 1)[0] ?? ''
  if (isIPv4(address)) return address
  if (!isIPv6(address)) return null
  // The URL parser knows every spelling.
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [, high, low] = MAPPED_IPV4.exec(canonical) ?? []
  if (high === undefined || low === undefined) return canonical
  return [high, low]
    .map(group => Number.parseInt(group, 16))
    .flatMap(group => [group >> 8, group & 0xff])
    .join('.')
}

/** @returns an IPv4 address itself, the /64 of an IPv6 address, which is what one subscriber has; empty for `null`. */
export const clientNetwork = (address: string | null): string => {
  if (address === null || isIPv4(address)) return address ?? ''
  return `${groupsOf(address)
    .slice(0, 4)
    .map(group => group.toString(16))
    .join(':')}::/64`
}
