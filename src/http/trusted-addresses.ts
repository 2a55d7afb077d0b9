/** Which senders of a request are trusted proxies (`TRUST_PROXY`). */
import proxyaddr from '@fastify/proxy-addr'

/**
 * @param networks addresses and networks; without any, nobody is trusted.
 * @returns whether an address is in one of them. It remembers the last one that is, because a service has few proxies.
 */
export const trustedAddresses = (networks: readonly string[]): ((address: string) => boolean) => {
  if (networks.length === 0) return () => false
  // Fastify's own module, which decides about `X-Forwarded-For` too: both trust the same proxies.
  const isTrusted = proxyaddr.compile([...networks])
  let last: string | null = null
  return address => {
    // An address that is unknown, as after a disconnect, is no proxy's.
    if (address !== last && isTrusted(address, 0)) last = address
    return address === last
  }
}
