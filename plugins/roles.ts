/**
 * The role gate: a private route that declares `config.roles` needs a user with any of them. Its hooks follow those of the user
 * gate (`routes/private/autohooks.ts`): before the body is read, and again after it. Routes without roles have no hook.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import { ServiceError } from '../src/errors.ts'
import { INVALID_ROLE, isRole } from '../src/users/roles.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The user needs any of these roles, else 403. Private routes only. */
    roles?: readonly [string, ...string[]]
  }
}

type Done = (error?: Error) => void

// Created once: capturing the stack, which is not used, costs more than the check.
const ROLE_REQUIRED = new ServiceError('roleRequired')

const requireRoles = (roles: readonly string[]) =>
  function requireRole(request: FastifyRequest, _reply: FastifyReply, done: Done): void {
    const held = request.user.roles
    done(roles.some(role => held.includes(role)) ? undefined : ROLE_REQUIRED)
  }

const nameOf = ({ method, url }: RouteOptions): string => `${[method].flat().join(', ')} ${url}`

/** @throws {Error} if the service must not start with the route. */
const checkRoles = (route: RouteOptions): void => {
  const roles: unknown = route.config?.roles
  if (route.config?.gate !== 'user')
    throw new Error(`${nameOf(route)} declares roles, but only private routes know the roles of their user`)
  if (!Array.isArray(roles) || roles.length === 0)
    throw new Error(`${nameOf(route)} declares no role: config.roles needs at least one`)
  const invalid = roles.find(role => !isRole(role))
  if (invalid !== undefined)
    throw new Error(`${nameOf(route)} declares the role ${JSON.stringify(invalid)}, which ${INVALID_ROLE}`)
}

const roles = async (app: FastifyInstance): Promise<void> => {
  const guarded: RouteOptions[] = []

  app.addHook('onRoute', route => {
    const declared = route.config?.roles
    if (declared === undefined) return
    guarded.push(route)
    const hook = requireRoles(declared)
    // First among the hooks of the route, so that a user without the role does not count towards its rate limit.
    route.onRequest = [hook, route.onRequest ?? []].flat()
    route.preHandler = [hook, route.preHandler ?? []].flat()
  })

  // The gate of a route is known only after the hooks of its scope.
  app.addHook('onReady', async () => guarded.forEach(checkRoles))
}

export default fp(roles, { name: 'roles', dependencies: ['authentication'] })
