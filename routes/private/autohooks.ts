/**
 * The user gate: every route in this folder and its subfolders needs an authenticated user (§5.1.4). API keys need the scope that the
 * route declares; routes without one accept sessions only (DESIGN §13).
 */
import type { FastifyInstance } from 'fastify'

export default async function userGate(app: FastifyInstance): Promise<void> {
  const { requirePrincipal, guardOfScope } = app.requestAuthentication
  // Before the body is read, so that rejected clients learn nothing about payloads; and again after it.
  app.addHook('onRequest', requirePrincipal)
  app.addHook('preHandler', requirePrincipal)
  app.addHook('onRoute', route => {
    // First among the hooks of the route. The scopes of a key never change, so they are checked once.
    route.onRequest = [guardOfScope(route.config?.scope ?? null), route.onRequest ?? []].flat()
    route.config = { ...route.config, gate: 'user' }
  })
}
