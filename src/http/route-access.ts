/** What a route requires of an authenticated request: scopes and roles. `request-authentication.ts` authenticates requests. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ServiceError } from '#base/errors'
import { missingScopes } from '#core/auth/admin-key'
import type { ClientAccess } from '#core/auth/client-authenticator'
import type { ScopeDescriptions } from '#core/auth/scopes'
import { INVALID_ROLE, isRole } from '#core/users/roles'
import { ADMIN_CHALLENGE, adminScopeRequired } from './admin-key-header.ts'

/** A hook function for `onRequest` or `preHandler`. It fails with a {@link ServiceError}. */
export type Guard = (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void

export const inSequence =
  (first: Guard, second: Guard): Guard =>
  (request, reply, done) =>
    first(request, reply, error => (error === undefined ? second(request, reply, done) : done(error)))

// Created once: capturing the stack, which is not used, costs more than the check.
const ROLE_REQUIRED = new ServiceError('roleRequired')

/** The error for API keys (RFC 6750 §3.1). @param scope that would suffice; `null`: none. */
export const insufficientScope = (scope: string | null): ServiceError => {
  const challenge = 'Bearer error="insufficient_scope"'
  return scope === null
    ? new ServiceError('sessionRequired', { headers: { 'www-authenticate': challenge } })
    : new ServiceError('scopeRequired', { headers: { 'www-authenticate': `${challenge}, scope="${scope}"` } })
}

/** @returns why a route cannot require these roles; `null` if it can. */
export const rolesProblem = (roles: unknown): string | null => {
  if (!Array.isArray(roles) || roles.length === 0) return 'declares no role: it needs at least one'
  const invalid = roles.find(role => !isRole(role))
  return invalid === undefined ? null : `declares the role ${JSON.stringify(invalid)}, which ${INVALID_ROLE}`
}

/** @returns why a route cannot require this scope; `null` if it can. */
export const scopeProblem = (declared: ScopeDescriptions, scope: string): string | null =>
  Object.hasOwn(declared, scope)
    ? null
    : `declares the scope ${JSON.stringify(scope)}, which is none of ${Object.keys(declared).join(', ')}`

/** For requests that have passed `authenticateUser`. @param refusal creates the error of a user without any of the roles. */
export const roleGuard =
  (roles: readonly string[], refusal: () => ServiceError = () => ROLE_REQUIRED): Guard =>
  (request, _reply, done) => {
    const held = request.user.roles
    done(roles.some(role => held.includes(role)) ? undefined : refusal())
  }

/** @param declared the scopes of admin keys. @returns why a route cannot need this of a client; `null` if it can. */
export const clientAccessProblem = (declared: ScopeDescriptions, access: unknown): string | null => {
  const { scope, resource } = (access ?? {}) as Partial<Record<keyof ClientAccess, unknown>>
  if (typeof scope !== 'string' || scope === '')
    return `declares client: ${JSON.stringify(access)}, which names no scope`
  if (resource === undefined) return scopeProblem(declared, scope)
  return typeof resource === 'string' && URL.canParse(resource)
    ? null
    : `declares the resource ${JSON.stringify(resource)}, which is not the URI of one`
}

/**
 * For requests that have passed `authenticateUser`. Sessions may do everything.
 * @param scope that API keys need; `null`: they are not accepted.
 */
export const scopeGuard =
  (scope: string | null): Guard =>
  (request, _reply, done) => {
    const { scopes } = request.requirePrincipal()
    if (scopes === null) return done()
    request.isApiKeyAccepted = scope !== null && scopes.includes(scope)
    done(request.isApiKeyAccepted ? undefined : insufficientScope(scope))
  }

/** The error for admin keys with scopes, where none suffices. */
const rootKeyRequired = (): ServiceError => new ServiceError('rootKeyRequired', { headers: ADMIN_CHALLENGE })

/**
 * For requests that have passed `authenticateAdmin`. Root keys may do everything.
 * @param scope that keys of the store need; `null`: they are not accepted.
 * @param others scopes that suffice too.
 */
export const adminScopeGuard =
  (scope: string | null, others: readonly string[] = []): Guard =>
  (request, _reply, done) => {
    const { adminKey } = request
    if (adminKey?.scopes === null) return done()
    if (adminKey?.scopes.some(held => held === scope || others.includes(held))) return done()
    // What this guard has refused must not look accepted to a later one.
    request.adminKey = null
    done(scope === null ? rootKeyRequired() : adminScopeRequired(scope))
  }

/** The scopes that a key needs to send properties of a body, by property. */
export type FieldScopes = Readonly<Record<string, string>>

/** @returns the scopes that a body needs, each once. @param scope of an empty body, and of properties without one of their own. */
const scopesOfBody = (body: unknown, scope: string, fieldScopes: FieldScopes): readonly string[] => {
  const own = new Map(Object.entries(fieldScopes))
  const names = Object.keys(body ?? {})
  return names.length === 0 ? [scope] : [...new Set(names.map(name => own.get(name) ?? scope))]
}

/** Checks the scopes of the body's properties, after `authenticateAdmin` and validation. */
export const fieldScopeGuard =
  (scope: string, fieldScopes: FieldScopes): Guard =>
  (request, _reply, done) => {
    const missing = missingScopes(
      request.adminKey ?? { scopes: [] },
      scopesOfBody(request.body, scope, fieldScopes),
    )
    if (missing.length === 0) return done()
    request.adminKey = null
    done(new ServiceError('scopeRequired', { missingAdminScopes: missing }))
  }

/** @param body the schema of the route's body. @returns why a route cannot have these scopes of fields; `null` if it can. */
export const fieldScopesProblem = (
  declared: ScopeDescriptions,
  fieldScopes: FieldScopes,
  body: unknown,
): string | null => {
  const { properties = {} } = (body ?? {}) as { readonly properties?: object }
  const unknown = Object.keys(fieldScopes).find(name => !Object.hasOwn(properties, name))
  if (unknown !== undefined)
    return `declares a scope of the field ${JSON.stringify(unknown)}, which is no property of its body`
  return (
    Object.values(fieldScopes)
      .map(scope => scopeProblem(declared, scope))
      .find(problem => problem !== null) ?? null
  )
}
