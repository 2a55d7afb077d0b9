/** Step 1 of the common processing (§1): helpers that raise HTTP errors, and content negotiation. */
import accepts from '@fastify/accepts'
import sensible from '@fastify/sensible'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

const sensiblePlugins = async (app: FastifyInstance): Promise<void> => {
  await app.register(sensible)
  // Distinguishes browsers that follow a link from API clients, for errors that redirect.
  await app.register(accepts)
}

export default fp(sensiblePlugins, { name: 'sensible' })
