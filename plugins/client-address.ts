/** The client's address, for sessions, the audit log, log lines and rate limits. Computed on access. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { clientNetwork } from '#core/rate-limits/limits'
import { clientAddress } from '#http/ip-address'

declare module 'fastify' {
  interface FastifyRequest {
    /** The client's IP address in canonical form, without a port; `null` if a trusted proxy sent none. */
    readonly clientAddress: string | null
    /** The key of rate limits: the IPv4 address, or the IPv6 /64; the connection's own if a proxy sent none. */
    readonly clientNetwork: string
  }
}

const clientAddresses = async (app: FastifyInstance): Promise<void> => {
  app.decorateRequest('clientAddress', {
    getter(this: FastifyRequest) {
      return clientAddress(this.ip)
    },
  })
  app.decorateRequest('clientNetwork', {
    getter(this: FastifyRequest) {
      return clientNetwork(this.clientAddress ?? clientAddress(this.socket.remoteAddress))
    },
  })
}

export default fp(clientAddresses, { name: 'client-address', dependencies: ['sensible'] })
