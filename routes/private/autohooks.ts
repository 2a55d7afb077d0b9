/** The user gate: every route in this folder and its subfolders needs an authenticated user (§5.1.4). */
import type { FastifyInstance } from 'fastify'

export default async function userGate(app: FastifyInstance): Promise<void> {
  const { requireUser } = app.gatehouse
  // Before the body is read, so that rejected clients learn nothing about payloads; and again after it.
  app.addHook('onRequest', requireUser)
  app.addHook('preHandler', requireUser)
  app.addHook('onRoute', route => {
    route.config = { ...route.config, gate: 'user' }
  })
}
