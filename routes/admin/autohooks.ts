/**
 * The admin gate: every route in this folder and its subfolders needs a valid admin key (§5.2), but no user. The key needs the scope
 * that the route declares (DESIGN §13); a route without one does not start (`plugins/scopes.ts`).
 */
import type { FastifyInstance } from 'fastify'

export default async function keyGate(app: FastifyInstance): Promise<void> {
  const { authenticateAdmin } = app.requestAuthentication
  // Before the body is read, so that rejected clients learn nothing about payloads; and again after it.
  app.addHook('onRequest', authenticateAdmin)
  app.addHook('preHandler', authenticateAdmin)
  app.addHook('onRoute', route => {
    route.config = { ...route.config, gate: 'adminKey' }
    app.guardScope(route)
  })
}
