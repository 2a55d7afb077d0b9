/** The network of a client: what limits count by. */
import { isIPv4 } from 'node:net'

/** The eight groups of a canonical IPv6 address, each as a number. */
const groupsOf = (canonical: string): number[] => {
  const [before = [], after = []] = canonical
    .split('::')
    .map(half => (half === '' ? [] : half.split(':').map(group => Number.parseInt(group, 16))))
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after]
}

/**
 * @param address in canonical form.
 * @returns the IPv4 address, or the /64 of an IPv6 address (what one subscriber gets); an empty string for `null`.
 */
export const clientNetwork = (address: string | null): string => {
  if (address === null || isIPv4(address)) return address ?? ''
  return `${groupsOf(address)
    .slice(0, 4)
    .map(group => group.toString(16))
    .join(':')}::/64`
}
