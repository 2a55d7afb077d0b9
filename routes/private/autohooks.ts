/** The user gate: every route in this folder and below it needs an identified user (§5.1.4). */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ServiceError } from '../../src/errors.ts'

type Done = (error?: Error) => void

const requireUser = (request: FastifyRequest, _reply: FastifyReply, done: Done): void => {
  if (request.identity !== null) return done()
  if (request.identityFailure !== null) return done(request.identityFailure as Error)
  const presented = request.accessToken !== null
  // RFC 6750 §3: no error code for who presented nothing.
  const challenge = presented ? 'Bearer error="invalid_token"' : 'Bearer'
  done(new ServiceError('signInRequired', { headers: { 'www-authenticate': challenge }, quiet: !presented }))
}

export default async function userGate(app: FastifyInstance): Promise<void> {
  // Also before the body is read: a refused caller learns nothing about payloads.
  app.addHook('onRequest', requireUser)
  app.addHook('preHandler', requireUser)
  app.addHook('onRoute', route => {
    route.config = { ...route.config, gate: 'user' }
  })
}
