/**
 * The role gate: a private route that declares `config.roles` needs a user with any of them. Its hooks follow those of the user
 * gate (`routes/private/autohooks.ts`): before the body is read, and again after it. Routes without roles have no hook.
 */
import type { FastifyInstance, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import { roleGuard, rolesProblem } from '../src/http/guards.ts'
import { routeName } from '../src/http/route-name.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The user needs any of these roles, else 403. Private routes only. */
    roles?: readonly [string, ...string[]]
  }
}

/** @throws {Error} if the service must not start with the route. */
const checkRoles = (route: RouteOptions): void => {
  if (route.config?.gate !== 'user')
    throw new Error(
      `${routeName(route)} declares roles, but only private routes know the roles of their user`,
    )
  const problem = rolesProblem(route.config?.roles)
  if (problem !== null) throw new Error(`${routeName(route)} ${problem}`)
}

const roles = async (app: FastifyInstance): Promise<void> => {
  const routes: { readonly route: RouteOptions; readonly guardedBy: unknown }[] = []

  app.addHook('onRoute', route => {
    const declared = route.config?.roles
    routes.push({ route, guardedBy: declared })
    if (declared === undefined) return
    const hook = roleGuard(declared)
    // First among the hooks of the route, so that a user without the role does not count towards its rate limit.
    route.onRequest = [hook, route.onRequest ?? []].flat()
    route.preHandler = [hook, route.preHandler ?? []].flat()
  })

  // The gate of a route is known only after the hooks of its scope, which could also declare roles, too late to guard the route.
  app.addHook('onReady', async () => {
    for (const { route, guardedBy } of routes) {
      if (route.config?.roles !== guardedBy)
        throw new Error(
          `${routeName(route)} gets its roles from a hook: declare config.roles in the route itself`,
        )
      if (guardedBy !== undefined) checkRoles(route)
    }
  })
}

export default fp(roles, { name: 'roles', dependencies: ['authentication'] })
