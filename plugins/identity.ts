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
    /** Finds out who makes the request, now: what was found before may have changed while a body arrived. */
    identify(done: () => void): void
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
      request.identity = null
      request.identityFailure = error
    }
  }

  app.decorateRequest('identify', function identify(done) {
    if (this.accessToken === null) return done()
    try {
      const found = identities.identify(this.accessToken)
      if (found instanceof Promise) return void identifyLater(this, found).then(() => done())
      this.identity = found
    } catch (error) {
      this.identity = null
      this.identityFailure = error
    }
    done()
  })

  app.addHook('onRequest', function identifyUser(request, _reply, done) {
    request.identify(done)
  })
}

export default fp(identity, { name: 'identity', dependencies: ['access-token'] })
