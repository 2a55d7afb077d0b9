/** Step 5 of the common processing (§1): finds the user of the token, on every route, and lets everybody pass (§5.1.3). */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Identity } from '../src/auth/identity.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Who makes the request; `null` when nobody is identified. */
    identity: Identity | null
    /**
     * Who makes the request, on a route behind the user gate.
     * @throws {Error} on any other route: a fault of the code, not of the caller.
     */
    getIdentity(): Identity
    /** Why a token could not be looked up: the gate raises it, public routes do without. */
    identityFailure: unknown
  }
}

const identity = async (app: FastifyInstance): Promise<void> => {
  const { identities } = app.services
  app.decorateRequest('identity', null)
  app.decorateRequest('identityFailure', null)
  app.decorateRequest('getIdentity', function getIdentity() {
    if (this.identity === null) throw new Error('This route is not behind the user gate')
    return this.identity
  })

  const identifyLater = async (
    request: FastifyRequest,
    lookedUp: Promise<Identity | null>,
  ): Promise<void> => {
    try {
      request.identity = await lookedUp
    } catch (error) {
      request.identityFailure = error
    }
  }

  app.addHook('onRequest', function identifyUser(request, _reply, done) {
    if (request.accessToken === null) return done()
    try {
      const found = identities.identify(request.accessToken)
      if (found instanceof Promise) {
        void identifyLater(request, found).then(() => done())
        return
      }
      request.identity = found
    } catch (error) {
      request.identityFailure = error
    }
    done()
  })
}

export default fp(identity, { name: 'identity', dependencies: ['access-token'] })
