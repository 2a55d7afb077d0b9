/**
 * Multi-factor authentication (RFC 9470): a private route that declares `config.factors` needs a session that was authenticated with two
 * factors: with a passkey, or with a code of an authenticator app. Its hooks follow those of the user gate, before the body is read and again
 * after it. Routes without the declaration have no hook.
 */
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { ServiceError } from '#base/errors'
import { isMultiFactor } from '#core/accounts/sign-in-methods'
import type { Guard } from '#http/route-access'
import { checkDeclarations } from '#http/route-declarations'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The session must have been authenticated with two factors, else 403. Private routes without a scope only. */
    factors?: 2
  }
}

/** The name of the policy in OpenID Connect PAPE, which identity providers use. */
const MULTI_FACTOR = 'http://schemas.openid.net/pape/policies/2007/06/multi-factor'

const CHALLENGE = `Bearer error="insufficient_user_authentication", acr_values="${MULTI_FACTOR}"`

// Created once: capturing the stack, which is not used, costs more than the check.
const REQUIRED = new ServiceError('multiFactorRequired', { headers: { 'www-authenticate': CHALLENGE } })

const requireFactors: Guard = (request, _reply, done) =>
  done(isMultiFactor(request.requirePrincipal().amr) ? undefined : REQUIRED)

const multiFactor = async (app: FastifyInstance): Promise<void> => {
  app.addHook('onRoute', route => {
    if (route.config?.factors === undefined) return
    route.onRequest = [requireFactors, route.onRequest ?? []].flat()
    route.preHandler = [requireFactors, route.preHandler ?? []].flat()
  })

  checkDeclarations(app, 'factors', ({ config }) => {
    if (config?.factors === undefined) return null
    if (config.gate !== 'user')
      return 'declares factors, but only private routes know the session of their user'
    if (config.scope !== undefined)
      return 'declares factors and a scope, but API keys prove no factor of their user'
    return config.factors === 2 ? null : `declares factors: ${JSON.stringify(config.factors)}, which is not 2`
  })
}

export default fp(multiFactor, { name: 'multi-factor', dependencies: ['authentication'] })
