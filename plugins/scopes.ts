/**
 * Checks at the start that every route declares a scope as its gate requires. The gates (`routes/private/autohooks.ts`,
 * `routes/admin/autohooks.ts`) guard the routes.
 */
import type { FastifyInstance, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import { scopeProblem } from '../src/http/guards.ts'
import { routeName } from '../src/http/route-name.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The scope that a key needs for the route. On private routes for API keys, which are not accepted without it; admin routes must
     * declare one.
     */
    scope?: string
  }
}

const scopes = async (app: FastifyInstance): Promise<void> => {
  const { userScopes, adminScopes } = app.services
  const routes: { readonly route: RouteOptions; readonly guardedBy: string | undefined }[] = []

  /** @returns why the service must not start with the route; `null` if it may. */
  const problemOf = ({ config }: RouteOptions): string | null => {
    const scope = config?.scope
    if (config?.gate === 'user') return scope === undefined ? null : scopeProblem(userScopes, scope)
    if (config?.gate === undefined)
      return scope === undefined ? null : 'declares a scope, but public routes are open to everybody'
    return scope === undefined
      ? `declares no scope: admin routes need one of ${Object.keys(adminScopes).join(', ')}`
      : scopeProblem(adminScopes, scope)
  }

  app.addHook('onRoute', route => void routes.push({ route, guardedBy: route.config?.scope }))

  // The gate of a route is known only after the hooks of its scope, which could also declare scopes, too late to guard the route.
  app.addHook('onReady', async () => {
    for (const { route, guardedBy } of routes) {
      const problem =
        route.config?.scope === guardedBy
          ? problemOf(route)
          : 'gets its scope from a hook: declare config.scope in the route itself'
      if (problem !== null) throw new Error(`${routeName(route)} ${problem}`)
    }
  })
}

export default fp(scopes, { name: 'scopes', dependencies: ['authentication'] })
