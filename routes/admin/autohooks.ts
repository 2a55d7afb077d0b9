/** The admin gate: every route in this folder and its subfolders needs a valid admin key (§5.2), but no user. */
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

  // Before the body is read, so that rejected clients learn nothing about payloads; and again after it.
  app.addHook('onRequest', requireAdminKey)
  app.addHook('preHandler', requireAdminKey)
  app.addHook('onRoute', route => {
    route.config = { ...route.config, gate: 'adminKey' }
  })
}
