/** The key gate: every route in this folder and below it needs a valid admin key (§5.2), and no user. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ADMIN_KEY_HEADER } from '../../src/auth/admin-keys.ts'
import { ServiceError } from '../../src/errors.ts'

type Done = (error?: Error) => void

export default async function keyGate(app: FastifyInstance): Promise<void> {
  const { adminKeys } = app.services

  const requireAdminKey = (request: FastifyRequest, _reply: FastifyReply, done: Done): void => {
    const presented = request.headers[ADMIN_KEY_HEADER]
    if (typeof presented === 'string' && adminKeys.accepts(presented)) return done()
    const headers = { 'www-authenticate': ADMIN_KEY_HEADER }
    const logged = presented === undefined ? { quiet: true } : { sampledAs: 'admin-key' }
    done(new ServiceError('adminKeyRequired', { headers, ...logged }))
  }

  // Also before the body is read: a refused caller learns nothing about payloads.
  app.addHook('onRequest', requireAdminKey)
  app.addHook('preHandler', requireAdminKey)
  app.addHook('onRoute', route => {
    route.config = { ...route.config, gate: 'adminKey' }
  })
}
