/** What handlers derive from a request: its actor, its client, and its disconnect. */
import type { FastifyRequest } from 'fastify'
import { ServiceError } from '#base/errors'
import type { Actor } from '#core/audit-log/event'
import { actorOfImpersonator, type PresentedAdminKey } from '#core/auth/admin-key'
import type { NewKeyOptions } from '#core/auth/api-key'
import { isApiKeyPrincipal, type Principal } from '#core/auth/principal'
import { type ScopeDescriptions, sortedScopes } from '#core/auth/scopes'
import type { SessionClient } from '#core/auth/session'
import { firstLocale } from '#core/users/locale'
import type { User } from '#core/users/user'

export { disconnectSignal } from '#http/disconnect-signal'

/** The actor of a private route: the user, an API key or a client of the user, or the administrator who impersonates them. */
export const userActor = (request: FastifyRequest): Actor => actorOf(request.requirePrincipal(), request)

/** The actor that a principal is in a request. */
export const actorOf = (principal: Principal, { clientAddress: ip }: FastifyRequest): Actor => {
  if (principal.client !== null) return { type: 'client', id: principal.client.id, ip }
  if (isApiKeyPrincipal(principal)) return { type: 'apiKey', id: principal.credentialId, ip }
  return principal.impersonatedBy === null
    ? { type: 'user', id: principal.cachedUser.user.id, ip }
    : { ...actorOfImpersonator(principal.impersonatedBy), ip }
}

/** The user of a request with a session, on public routes; `null` for other requests, those with API keys too. */
export const sessionUserOf = ({ principal }: FastifyRequest): User | null =>
  principal === null || isApiKeyPrincipal(principal) ? null : principal.cachedUser.user

/** The id of the session of a request. @throws {Error} on routes that accept API keys (`config.scope`): a bug. */
export const sessionIdOf = (request: FastifyRequest): string => {
  const principal = request.requirePrincipal()
  if (isApiKeyPrincipal(principal)) throw new Error('This route accepts API keys: it has no session')
  return principal.credentialId
}

/**
 * Rejects impersonated requests, even with the correct password. For changes of credentials and the removal of the account: a
 * changed password, for example, would open a session without the impersonation's expiry and mark.
 * @throws {ServiceError} `impersonated`
 */
export const refuseImpersonation = (request: FastifyRequest): void => {
  if (request.requirePrincipal().impersonatedBy !== null) throw new ServiceError('impersonated')
}

/** The admin key of a request. @throws {Error} on routes that are not admin routes: a bug. */
export const adminKeyOf = ({ adminKey }: FastifyRequest): PresentedAdminKey => {
  if (adminKey === null) throw new Error('This route is not an admin route: it has no admin key')
  return adminKey
}

/** The actor of an admin route. */
export const adminActor = (request: FastifyRequest): Actor => {
  const { id, administrator } = adminKeyOf(request)
  return {
    type: administrator === undefined ? 'adminKey' : 'administrator',
    ...{ id, ip: request.clientAddress },
  }
}

interface NewKeyBody {
  readonly name: string
  readonly scopes: readonly string[]
  readonly expiresAt?: string | null | undefined
}

/** The options of a new key, from a validated body. @param declared every scope of such keys. */
export const newKeyOptionsOf = (
  { name, scopes, expiresAt }: NewKeyBody,
  declared: ScopeDescriptions,
): NewKeyOptions => ({
  name,
  scopes: sortedScopes(declared, scopes),
  expiresAt: expiresAt == null ? null : Date.parse(expiresAt),
})

/** What identifies the session to its owner. */
export const clientOf = ({ clientAddress, headers }: FastifyRequest): SessionClient => ({
  ip: clientAddress,
  userAgent: headers['user-agent'] ?? null,
})

/** The member `returnTo` of the body with which a page calls the API. */
export const returnToOf = ({ returnTo }: FastifyRequest): { readonly returnTo?: string } =>
  returnTo === null ? {} : { returnTo }

/** The language that the client prefers, as a user's `locale`; `null` if it names none. */
export const preferredLocaleOf = (request: FastifyRequest): string | null =>
  firstLocale(request.accepts().languages())
