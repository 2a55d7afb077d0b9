/**
 * The role gate: a private route that declares `config.roles` needs a user with any of them. Its hooks follow those of the user
 * gate (`routes/private/autohooks.ts`): before the body is read, and again after it. Routes without roles have no hook.
 */
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { roleGuard, rolesProblem } from '#http/route-access'
import { checkDeclarations } from '#http/route-declarations'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The user needs any of these roles, else 403. Private routes only. */
    roles?: readonly [string, ...string[]]
  }
}

const roles = async (app: FastifyInstance): Promise<void> => {
  app.addHook('onRoute', route => {
    const declared = route.config?.roles
    if (declared === undefined) return
    const hook = roleGuard(declared)
    // First among the hooks of the route, so that a user without the role does not count towards its rate limit.
    route.onRequest = [hook, route.onRequest ?? []].flat()
    route.preHandler = [hook, route.preHandler ?? []].flat()
  })

  checkDeclarations(app, 'roles', ({ config }) => {
    if (config?.roles === undefined) return null
    if (config.gate !== 'user') return 'declares roles, but only private routes know the roles of their user'
    return rolesProblem(config.roles)
  })
}

export default fp(roles, { name: 'roles', dependencies: ['authentication'] })
