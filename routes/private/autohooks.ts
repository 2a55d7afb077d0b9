/**
 * The user gate: every route in this folder and its subfolders needs an authenticated user (§5.1.4). API keys need the scope that the
 * route declares; routes without one accept sessions only (docs/design.md, "Machine callers").
 */
import type { FastifyInstance } from 'fastify'

export default async function userGate(app: FastifyInstance): Promise<void> {
  const { authenticateUser, requireRouteScope } = app.requestAuthentication
  // Before the body is read, so that rejected clients learn nothing about payloads; and again after it.
  app.addHook('onRequest', authenticateUser)
  app.addHook('preHandler', authenticateUser)
  // Here, not at each route: hooks of subfolders run later and cannot remove it. The scopes of a key never change.
  app.addHook('onRequest', requireRouteScope)
  app.addHook('onRoute', route => {
    route.config = { ...route.config, gate: 'user' }
    app.limitWrites(route)
  })
}
