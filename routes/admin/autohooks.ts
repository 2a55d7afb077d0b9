/** The admin gate: every route in this folder and its subfolders needs a valid admin key (§5.2), but no user. */
import type { FastifyInstance } from 'fastify'

export default async function keyGate(app: FastifyInstance): Promise<void> {
  const { requireAdminKey } = app.gatehouse
  // Before the body is read, so that rejected clients learn nothing about payloads; and again after it.
  app.addHook('onRequest', requireAdminKey)
  app.addHook('preHandler', requireAdminKey)
  app.addHook('onRoute', route => {
    route.config = { ...route.config, gate: 'adminKey' }
  })
}
