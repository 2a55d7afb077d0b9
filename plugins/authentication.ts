/** Step 5 of the common processing (§1): authenticates every request by its token, and rejects none (§5.1.3). */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Principal } from '../src/auth/principal.ts'
import type { User } from '../src/users/user.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** How the request was authenticated; `null` when it is anonymous. */
    principal: Principal | null
    /**
     * The authenticated user, on private routes.
     * @throws {Error} on other routes: a bug, not a client error.
     */
    readonly user: User
    /**
     * How the request was authenticated, on private routes.
     * @throws {Error} on other routes: a bug, not a client error.
     */
    requirePrincipal(): Principal
    /** The error of a failed token lookup. The user gate throws it; public routes continue anonymously. */
    authenticationFailure: unknown
    /** Authenticates the request again: the user may have changed while the body arrived. */
    authenticate(done: () => void): void
  }
}

const authentication = async (app: FastifyInstance): Promise<void> => {
  const { authenticator } = app.services
  app.decorateRequest('principal', null)
  app.decorateRequest('authenticationFailure', null)
  app.decorateRequest('requirePrincipal', function requirePrincipal() {
    if (this.principal === null) throw new Error('This route is not private: it has no user')
    return this.principal
  })
  app.decorateRequest('user', {
    getter() {
      return this.requirePrincipal().cachedUser.user
    },
  })

  const authenticateLater = async (
    request: FastifyRequest,
    lookup: Promise<Principal | null>,
  ): Promise<void> => {
    try {
      request.principal = await lookup
    } catch (error) {
      request.principal = null
      request.authenticationFailure = error
    }
  }

  app.decorateRequest('authenticate', function authenticate(done) {
    if (this.accessToken === null) return done()
    try {
      const found = authenticator.authenticate(this.accessToken)
      if (found instanceof Promise) return void authenticateLater(this, found).then(() => done())
      this.principal = found
    } catch (error) {
      this.principal = null
      this.authenticationFailure = error
    }
    done()
  })

  app.addHook('onRequest', function authenticateRequest(request, _reply, done) {
    request.authenticate(done)
  })
}

export default fp(authentication, { name: 'authentication', dependencies: ['access-token'] })
