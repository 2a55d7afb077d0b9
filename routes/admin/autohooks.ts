/**
 * The admin gate: every route in this folder and its subfolders needs a valid admin key (§5.2), but no user. The key needs the scope
 * that the route declares (docs/design.md, "Machine callers"); a route without one does not start (`plugins/scopes.ts`).
 */
import type { FastifyInstance } from 'fastify'

export default async function keyGate(app: FastifyInstance): Promise<void> {
  const { authenticateAdmin, requireAdminRouteScope, requireAdminFieldScopes } = app.requestAuthentication
  // Before the body is read, so that rejected clients learn nothing about payloads; and again after it.
  app.addHook('onRequest', authenticateAdmin)
  app.addHook('preHandler', authenticateAdmin)
  app.addHook('preHandler', requireAdminFieldScopes)
  // Here, not at each route: hooks of subfolders run later and cannot remove it. The scopes of a key never change.
  app.addHook('onRequest', requireAdminRouteScope)
  app.addHook('onRoute', route => {
    route.config = { ...route.config, gate: 'adminKey' }
  })
}
