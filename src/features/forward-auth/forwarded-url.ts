/** The URL of the request that a proxy asks about. */
import type { FastifyRequest } from 'fastify'
import { trustedAddresses } from '#http/trusted-addresses'

/** Of nginx's ingress controller: the whole URL. */
const ORIGINAL_URL = 'x-original-url'

/** The fields that Caddy, Traefik and HAProxy's script send beside `X-Forwarded-Host` and `X-Forwarded-Proto`. */
const FORWARDED_URI = 'x-forwarded-uri'

/**
 * @param trustedProxies addresses and networks, of `TRUST_PROXY`.
 * @returns a function that finds the URL; `null` without one, or if the sender is no trusted proxy.
 */
export const forwardedUrlFinder = (
  trustedProxies: readonly string[],
): ((request: FastifyRequest) => string | null) => {
  const isTrusted = trustedAddresses(trustedProxies)
  return ({ headers, protocol, host, socket }) => {
    if (!isTrusted(socket.remoteAddress ?? '')) return null
    const { [ORIGINAL_URL]: url, [FORWARDED_URI]: uri } = headers
    if (typeof url === 'string') return url
    return typeof uri === 'string' && uri.startsWith('/') ? `${protocol}://${host}${uri}` : null
  }
}
