import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Actor } from '../src/audit-log/event.ts'
import { ADMIN_KEY_HEADER, AdminKeys } from '../src/auth/admin-keys.ts'
import type { SessionClient } from '../src/auth/session.ts'
import { ServiceError } from '../src/errors.ts'

/** Who acts on a route behind the user gate: the user, or the administrator who acts as them. */
export const userActor = (request: FastifyRequest): Actor => {
  const { cachedUser, impersonatedBy } = request.requirePrincipal()
  const ip = request.clientAddress
  return impersonatedBy === null
    ? { type: 'user', id: cachedUser.user.id, ip }
    : { type: 'adminKey', id: impersonatedBy, ip }
}

/**
 * For what an account stands on: an administrator who acts as its user is refused, also with the right password. A password that
 * was changed would open a session without its end and its mark.
 * @throws {ServiceError} `impersonated`
 */
export const refuseImpersonation = (request: FastifyRequest): void => {
  if (request.requirePrincipal().impersonatedBy !== null) throw new ServiceError('impersonated')
}

/** Who acts on a route behind the key gate. */
export const adminActor = ({ headers, clientAddress }: FastifyRequest): Actor => ({
  type: 'adminKey',
  id: AdminKeys.idOf(String(headers[ADMIN_KEY_HEADER])),
  ip: clientAddress,
})

/** What a session's owner recognises it by. */
export const clientOf = ({ clientAddress, headers }: FastifyRequest): SessionClient => ({
  ip: clientAddress,
  userAgent: headers['user-agent'] ?? null,
})

/**
 * Aborted when the client goes before its answer, so that nothing is computed for nobody. Fastify's `request.signal` is
 * not that: it is aborted as soon as a body has been read (fastify#6725).
 */
export const disconnectSignal = ({ raw }: FastifyReply): AbortSignal => {
  const controller = new AbortController()
  const { socket } = raw.req
  const abort = (): void => controller.abort()
  // Nearly always a client that has gone. One that has only ended its side has its response if there is no line to wait in.
  socket.once('end', abort)
  raw.once('close', () => {
    socket.off('end', abort)
    if (!raw.writableFinished) abort()
  })
  return controller.signal
}
