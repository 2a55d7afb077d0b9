/** Step 5 of the common processing (§1): authenticates every request by its token, and rejects none (§5.1.3). */
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

const authentication = async (app: FastifyInstance): Promise<void> => {
  const { authenticate } = app.requestAuthentication

  app.addHook('onRequest', function authenticateRequest(request, _reply, done) {
    authenticate(request, done)
  })
}

export default fp(authentication, { name: 'authentication', dependencies: ['access-token'] })
