/** The user gate: every route in this folder and its subfolders needs an authenticated user (§5.1.4). */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ServiceError } from '../../src/errors.ts'

type Done = (error?: Error) => void

// Created once: capturing the stack, which is not used, took 15 % of such a request.
const BAD_TOKEN = new ServiceError('signInRequired', {
  headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
  sampledAs: 'access-token',
})
// RFC 6750 §3: no error code for requests without credentials.
const NO_TOKEN = new ServiceError('signInRequired', {
  headers: { 'www-authenticate': 'Bearer' },
  quiet: true,
})

const errorOf = ({ authenticationFailure, accessToken }: FastifyRequest): Error => {
  if (authenticationFailure !== null) return authenticationFailure as Error
  return accessToken === null ? NO_TOKEN : BAD_TOKEN
}

const requireUser = (request: FastifyRequest, _reply: FastifyReply, done: Done): void => {
  const { principal, server } = request
  if (principal === null) return done(errorOf(request))
  if (server.services.authenticator.isCurrent(principal)) return done()
  // The user has changed since the last check. The body may have taken seconds, and the user may be disabled now.
  request.authenticate(() => (request.principal === null ? done(errorOf(request)) : done()))
}

export default async function userGate(app: FastifyInstance): Promise<void> {
  // Before the body is read, so that rejected clients learn nothing about payloads; and again after it.
  app.addHook('onRequest', requireUser)
  app.addHook('preHandler', requireUser)
  app.addHook('onRoute', route => {
    route.config = { ...route.config, gate: 'user' }
  })
}
