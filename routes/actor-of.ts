import type { FastifyRequest } from 'fastify'
import { ADMIN_KEY_HEADER, AdminKeys } from '../src/auth/admin-keys.ts'
import { ServiceError } from '../src/errors.ts'
import type { Actor } from '../src/users/event.ts'

/** Who acts on a route behind the user gate: the user, or the administrator who acts as them. */
export const userActor = (request: FastifyRequest): Actor => {
  const { known, impersonatedBy } = request.getIdentity()
  const ip = request.clientAddress
  return impersonatedBy === null
    ? { type: 'user', id: known.user.id, ip }
    : { type: 'adminKey', id: impersonatedBy, ip }
}

/**
 * For what an account stands on: an administrator who acts as its user is refused, also with the right password. A password that
 * was changed would open a session without its end and its mark.
 * @throws {ServiceError} `impersonated`
 */
export const refuseImpersonation = (request: FastifyRequest): void => {
  if (request.getIdentity().impersonatedBy !== null) throw new ServiceError('impersonated')
}

/** Who acts on a route behind the key gate. */
export const adminActor = ({ headers, clientAddress }: FastifyRequest): Actor => ({
  type: 'adminKey',
  id: AdminKeys.idOf(String(headers[ADMIN_KEY_HEADER])),
  ip: clientAddress,
})
