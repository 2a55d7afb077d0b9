/** Step 1 of the common processing (§1): what routes raise errors with. */
import accepts from '@fastify/accepts'
import sensible from '@fastify/sensible'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

const errorFacilities = async (app: FastifyInstance): Promise<void> => {
  await app.register(sensible)
  // Tells a browser that follows a link from a client of the API, for errors that redirect.
  await app.register(accepts)
}

export default fp(errorFacilities, { name: 'sensible' })
