/** The user gate: every route in this folder and below it needs an identified user (§5.1.4). */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ServiceError } from '../../src/errors.ts'

type Done = (error?: Error) => void

const refuse = (request: FastifyRequest): Error => {
  if (request.identityFailure !== null) return request.identityFailure as Error
  const presented = request.accessToken !== null
  // RFC 6750 §3: no error code for who presented nothing.
  const challenge = presented ? 'Bearer error="invalid_token"' : 'Bearer'
  return new ServiceError('signInRequired', { headers: { 'www-authenticate': challenge }, quiet: !presented })
}

const requireUser = (request: FastifyRequest, _reply: FastifyReply, done: Done): void => {
  if (request.identity?.known.current) return done()
  if (request.identity === null) return done(refuse(request))
  // The user has changed since: a body may take seconds to arrive, and a disabled user's must not be acted upon.
  request.identify(() => (request.identity === null ? done(refuse(request)) : done()))
}

export default async function userGate(app: FastifyInstance): Promise<void> {
  // Also before the body is read: a refused caller learns nothing about payloads.
  app.addHook('onRequest', requireUser)
  app.addHook('preHandler', requireUser)
  app.addHook('onRoute', route => {
    route.config = { ...route.config, gate: 'user' }
  })
}
