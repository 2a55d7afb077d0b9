/** The user gate: every route in this folder and below it needs an identified user (§5.1.4). */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ServiceError } from '../../src/errors.ts'

type Done = (error?: Error) => void

// Made once: to note the stack of an error, which nobody reads of these, took 15 % of such a request.
const BAD_TOKEN = new ServiceError('signInRequired', {
  headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
  sampledAs: 'access-token',
})
// RFC 6750 §3: no error code for who presented nothing.
const NO_TOKEN = new ServiceError('signInRequired', {
  headers: { 'www-authenticate': 'Bearer' },
  quiet: true,
})

const refuse = ({ authenticationFailure, accessToken }: FastifyRequest): Error => {
  if (authenticationFailure !== null) return authenticationFailure as Error
  return accessToken === null ? NO_TOKEN : BAD_TOKEN
}

const requireUser = (request: FastifyRequest, _reply: FastifyReply, done: Done): void => {
  const { principal, server } = request
  if (principal === null) return done(refuse(request))
  if (server.services.authenticator.isCurrent(principal)) return done()
  // The user has changed since: a body may take seconds to arrive, and a disabled user's must not be acted upon.
  request.authenticate(() => (request.principal === null ? done(refuse(request)) : done()))
}

export default async function userGate(app: FastifyInstance): Promise<void> {
  // Also before the body is read: a refused caller learns nothing about payloads.
  app.addHook('onRequest', requireUser)
  app.addHook('preHandler', requireUser)
  app.addHook('onRoute', route => {
    route.config = { ...route.config, gate: 'user' }
  })
}
