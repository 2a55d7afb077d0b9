/**
 * What private routes need of their user beside a session or a scope: roles, two factors (RFC 9470), and the guards of features. The hooks
 * follow those of the user gate, before the body is read and again after it. Routes that declare nothing have no hook.
 */
import type { FastifyContextConfig, FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { ServiceError } from '#base/errors'
import { isMultiFactor, MULTI_FACTOR_POLICY } from '#core/accounts/sign-in-methods'
import { type Guard, roleGuard, rolesProblem } from '#http/route-access'
import { checkDeclarations } from '#http/route-declarations'
import { guardHook } from '#http/route-guards'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The user needs any of these roles, else 403. Private routes only. */
    roles?: readonly [string, ...string[]]
    /** The session must have been authenticated with two factors, else 403. Private routes without a scope only. */
    factors?: 2
  }
}

const CHALLENGE = `Bearer error="insufficient_user_authentication", acr_values="${MULTI_FACTOR_POLICY}"`

// Created once: capturing the stack, which is not used, costs more than the check.
const REQUIRED = new ServiceError('multiFactorRequired', { headers: { 'www-authenticate': CHALLENGE } })

const requireFactors: Guard = (request, _reply, done) =>
  done(isMultiFactor(request.requirePrincipal().amr) ? undefined : REQUIRED)

/** What a property of `config` makes of a route. */
interface Condition<Property extends keyof FastifyContextConfig> {
  /** What public and admin routes do not know, for the error. */
  readonly needs: string
  readonly guardOf: (declared: NonNullable<FastifyContextConfig[Property]>) => Guard
  /** @returns why a private route cannot declare this; `null` if it can. */
  readonly problemOf: (declared: unknown, config: FastifyContextConfig, url: string) => string | null
}

const guardRoutes = <Property extends keyof FastifyContextConfig>(
  app: FastifyInstance,
  property: Property,
  { needs, guardOf, problemOf }: Condition<Property>,
): void => {
  app.addHook('onRoute', route => {
    const declared = route.config?.[property]
    if (declared === undefined) return
    const guard = guardOf(declared as NonNullable<FastifyContextConfig[Property]>)
    // First among the hooks of the route, so that a user who is refused does not count towards its rate limit.
    route.onRequest = [guard, route.onRequest ?? []].flat()
    route.preHandler = [guard, route.preHandler ?? []].flat()
  })

  checkDeclarations(app, property, ({ config = {}, url }) => {
    const declared = config[property]
    if (declared === undefined) return null
    if (config.gate !== 'user') return `declares ${property}, but only private routes know ${needs}`
    return problemOf(declared, config, url)
  })
}

/** The last one runs first. */
const routeGuards = async (app: FastifyInstance): Promise<void> => {
  for (const [name, guard] of Object.entries(app.services.routeGuards))
    guardRoutes(app, name as keyof FastifyContextConfig, {
      needs: 'their user',
      guardOf: declared => guardHook(name, guard, declared),
      problemOf: (declared, _config, url) => guard.problemOf(declared, url),
    })

  guardRoutes(app, 'factors', {
    needs: 'the session of their user',
    guardOf: () => requireFactors,
    problemOf(factors, { scope }) {
      if (scope !== undefined)
        return 'declares factors and a scope, but API keys prove no factor of their user'
      return factors === 2 ? null : `declares factors: ${JSON.stringify(factors)}, which is not 2`
    },
  })

  guardRoutes(app, 'roles', {
    needs: 'the roles of their user',
    guardOf: roles => roleGuard(roles),
    problemOf: rolesProblem,
  })
}

export default fp(routeGuards, { name: 'route-guards', dependencies: ['authentication'] })
