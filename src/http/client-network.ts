/** By what a client is counted: its IPv4 address, or the /64 of its IPv6 address, which is what one subscriber has. */
import { isIPv4, isIPv6 } from 'node:net'

/** What is no address: a proxy that is trusted may write anything. */
const MAX_LENGTH = 64

/** Some proxies write the port behind the address, which is another one with every connection. */
const WITH_PORT = /^(?:\[([^\]]*)\]|(\d+\.\d+\.\d+\.\d+))(?::\d+)?$/

/** The eight groups of an IPv6 address, each as a number. The URL parser knows its every spelling. */
const groupsOf = (address: string): number[] => {
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [before = [], after = []] = canonical
    .split('::')
    .map(half => (half === '' ? [] : half.split(':').map(group => Number.parseInt(group, 16))))
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after]
}

/** `::ffff:a.b.c.d` (RFC 4291 §2.5.5.2) is how a socket for both shows a client that came by IPv4. */
const isMappedIPv4 = (groups: readonly number[]): boolean =>
  groups[5] === 0xffff && groups.slice(0, 5).every(group => group === 0)

/** @param ip as Fastify gives it; `undefined` when the connection is gone already. */
export const clientNetwork = (ip: string | undefined): string => {
  const [, bracketed, dotted] = WITH_PORT.exec(ip ?? '') ?? []
  // Without a zone (RFC 4007 §11), which names an interface of this machine.
  const address = (bracketed ?? dotted ?? ip ?? '').split('%', 1)[0] ?? ''
  if (isIPv4(address) || !isIPv6(address)) return address.slice(0, MAX_LENGTH)
  const groups = groupsOf(address)
  if (isMappedIPv4(groups)) {
    return groups
      .slice(6)
      .flatMap(group => [group >> 8, group & 0xff])
      .join('.')
  }
  return `${groups
    .slice(0, 4)
    .map(group => group.toString(16))
    .join(':')}::/64`
}
