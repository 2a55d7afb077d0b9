/**
 * The gate of routes for programs (`config.client`): a token that a client of the authorization server has for itself opens them, and nothing
 * else. It runs before the body is read, and again after it.
 */
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { ClientAccess } from '#core/auth/client-authenticator'
import { clientAccessProblem } from '#http/route-access'
import { checkDeclarations } from '#http/route-declarations'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What a client's own token needs for the route: a scope, and the resource that it belongs to. Public routes only. */
    client?: ClientAccess
  }
}

const clientGate = async (app: FastifyInstance): Promise<void> => {
  const { requireClient } = app.requestAuthentication
  const { adminScopes } = app.services

  app.addHook('onRoute', route => {
    const access = route.config?.client
    // What is not valid stops the start, see below.
    if (access === undefined || clientAccessProblem(adminScopes, access) !== null) return
    const guard = requireClient(access)
    // First among the hooks of the route, so that a refused request does not count towards its rate limit.
    route.onRequest = [guard, route.onRequest ?? []].flat()
    route.preHandler = [guard, route.preHandler ?? []].flat()
  })

  checkDeclarations(app, 'client', ({ config = {} }) => {
    if (config.client === undefined) return null
    return config.gate === undefined
      ? clientAccessProblem(adminScopes, config.client)
      : 'declares client, but its folder has a gate already: move it to public/'
  })
}

export default fp(clientGate, { name: 'client-gate', dependencies: ['csrf', 'not-found', 'route-guards'] })
