/** Where a request comes from: for sessions, the audit log, log lines and rate limits. Found when it is asked for. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { clientAddress, clientNetwork } from '../src/http/client-network.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The client's IP address in one spelling, without a port; `null` when a trusted proxy gave none. */
    readonly clientAddress: string | null
    /** By what the client is counted: its IPv4 address, or its IPv6 /64; the connection's own where a proxy gave none. */
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
