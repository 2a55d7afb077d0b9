/**
 * The scopes of keys: API keys on private routes, admin keys on admin routes. The gates (`routes/private/autohooks.ts`,
 * `routes/admin/autohooks.ts`) guard each of their routes, so that a route without a scope is closed to keys.
 */
import type { FastifyInstance, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import {
  adminScopeGuard,
  type Guard,
  insufficientScope,
  scopeGuard,
  scopeProblem,
} from '../src/http/route-access.ts'
import { checkDeclarations } from '../src/http/route-declarations.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Adds the check of the declared scope to a route, whose `config.gate` is set. */
    guardScope(route: RouteOptions): void
  }
  interface FastifyContextConfig {
    /**
     * The scope that a key needs for the route. On private routes for API keys, which are not accepted without it; admin routes must
     * declare one.
     */
    scope?: string
  }
}

/** With one error for all requests: capturing the stack, which is not used, costs more than the check. */
const apiKeyGuard = (scope: string | null): Guard => {
  const refusal = insufficientScope(scope)
  return scopeGuard(scope, () => refusal)
}

const guardScope = (route: RouteOptions): void => {
  const scope = route.config?.scope ?? null
  const guard = route.config?.gate === 'user' ? apiKeyGuard(scope) : adminScopeGuard(scope)
  // First among the hooks of the route. The scopes of a key never change, so they are checked once.
  route.onRequest = [guard, route.onRequest ?? []].flat()
}

const scopes = async (app: FastifyInstance): Promise<void> => {
  const { userScopes, adminScopes } = app.services

  app.decorate('guardScope', guardScope)

  checkDeclarations(app, 'scope', ({ config }) => {
    const scope = config?.scope
    if (config?.gate === 'user') return scope === undefined ? null : scopeProblem(userScopes, scope)
    if (config?.gate === undefined)
      return scope === undefined ? null : 'declares a scope, but public routes are open to everybody'
    return scope === undefined
      ? `declares no scope: admin routes need one of ${Object.keys(adminScopes).join(', ')}`
      : scopeProblem(adminScopes, scope)
  })
}

export default fp(scopes, { name: 'scopes', dependencies: ['authentication'] })
