/** The client of a request: its IP address in canonical form. */
import { isIPv4, isIPv6 } from 'node:net'

/** Some proxies append the port, which changes with every connection. */
const WITH_PORT = /^(?:\[([^\]]*)\]|(\d+\.\d+\.\d+\.\d+))(?::\d+)?$/

/** An IPv4-mapped address (RFC 4291 §2.5.5.2) as the URL parser writes it; dual-stack sockets report IPv4 clients this way. */
const MAPPED_IPV4 = /^::ffff:([\da-f]{1,4}):([\da-f]{1,4})$/

/**
 * @param ip Fastify's `request.ip`, which a trusted proxy may have written; `undefined` after the connection has closed.
 * @returns IPv4 and IPv4-mapped addresses in dotted form, IPv6 as in RFC 5952, without port and without zone (RFC 4007 §11: an
 * interface of this machine). `null` if it is not an IP address.
 */
export const clientAddress = (ip: string | undefined): string | null => {
  if (ip === undefined) return null
  if (isIPv4(ip)) return ip
  const [, bracketed, dotted] = WITH_PORT.exec(ip) ?? []
  const address = (bracketed ?? dotted ?? ip).split('%', 1)[0] ?? ''
  if (isIPv4(address)) return address
  if (!isIPv6(address)) return null
  // The URL parser accepts every spelling and returns the canonical one. ipaddr.js takes `::192.0.2.1` for a mapped address, and
  // twice as long.
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [, high, low] = MAPPED_IPV4.exec(canonical) ?? []
  if (high === undefined || low === undefined) return canonical
  return [high, low]
    .map(group => Number.parseInt(group, 16))
    .flatMap(group => [group >> 8, group & 0xff])
    .join('.')
}
