/**
 * Authentication of requests, and the guards that require it: hook functions for the scopes of `routes/` and for routes of a host
 * application.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AdminAuthenticator } from '../auth/admin-authenticator.ts'
import type { PresentedAdminKey } from '../auth/admin-key.ts'
import type { Authenticator } from '../auth/authenticator.ts'
import { isApiKeyPrincipal, type Principal } from '../auth/principal.ts'
import type { ScopeDescriptions } from '../auth/scopes.ts'
import { type ErrorDetails, ServiceError } from '../errors.ts'
import { INVALID_ROLE, isRole } from '../users/roles.ts'
import type { User } from '../users/user.ts'
import { ACCESS_TOKEN_COOKIE, extractAccessToken } from './access-token.ts'
import { ADMIN_CHALLENGE, ADMIN_KEY_HEADER, adminScopeRequired } from './admin-key-header.ts'
import { csrfError } from './csrf.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** How the request was authenticated; `null` when it is anonymous. */
    principal: Principal | null
    /**
     * The authenticated user, on private routes and behind `requireUser`.
     * @throws {Error} on other routes: a bug, not a client error.
     */
    readonly user: User
    /**
     * How the request was authenticated, on private routes and behind `requireUser`.
     * @throws {Error} on other routes: a bug, not a client error.
     */
    requirePrincipal(): Principal
    /** Whose principal it is: a host may have several services. `null` before authentication. */
    authenticatedBy: RequestAuthentication | null
    /** The error of a failed token lookup. `requireUser` fails with it; public routes continue anonymously. */
    authenticationFailure: unknown
    /** Whether a guard has accepted the scopes of the API key. Other guards reject API keys until then. */
    isScopeAccepted: boolean
    /** The admin key, on admin routes and behind the guards of admin keys; else `null`. */
    adminKey: PresentedAdminKey | null
  }
}

/** A hook function for `onRequest` or `preHandler`. It fails with a {@link ServiceError}. */
export type Guard = (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void

export interface Guards {
  /** Requires an authenticated user with a session, and sets `request.user` and `request.principal`. */
  readonly requireUser: Guard
  /**
   * As `requireUser`, and also accepts API keys with this scope.
   * @throws {Error} if there is no such scope.
   */
  requireScope(scope: string): Guard
  /**
   * As `requireUser`, for users with any of these roles. After `requireScope` it also accepts API keys.
   * @throws {Error} if a role is not valid, or there is none.
   */
  requireRoles(...roles: readonly string[]): Guard
  /** Requires `ADMIN_KEY` in the header `x-admin-key`. Keys with scopes are not accepted: they may do less than the route does. */
  readonly requireAdminKey: Guard
  /**
   * Requires an admin key with this scope, and sets `request.adminKey`. `ADMIN_KEY` has every scope.
   * @throws {Error} if there is no such scope.
   */
  requireAdminScope(scope: string): Guard
}

// Created once: capturing the stack, which is not used, costs more than the check.
const ROLE_REQUIRED = new ServiceError('roleRequired')

/** The error for API keys (RFC 6750 §3.1). @param scope that would suffice; `null`: none. */
const insufficientScope = (scope: string | null): ServiceError => {
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

/** For requests that have passed `requireUser`. @param refusal creates the error of a user without any of the roles. */
export const roleGuard =
  (roles: readonly string[], refusal: () => ServiceError = () => ROLE_REQUIRED): Guard =>
  (request, _reply, done) => {
    const held = request.user.roles
    done(roles.some(role => held.includes(role)) ? undefined : refusal())
  }

/** @param refusal creates the error of an API key. */
const scopeGuard =
  (scope: string | null, refusal: () => ServiceError): Guard =>
  (request, _reply, done) => {
    const { scopes } = request.requirePrincipal()
    if (scopes === null) return done()
    if (scope === null || !scopes.includes(scope)) return done(refusal())
    request.isScopeAccepted = true
    done()
  }

/** The error for admin keys with scopes, where none suffices. */
const rootKeyRequired = (): ServiceError => new ServiceError('rootKeyRequired', { headers: ADMIN_CHALLENGE })

/** @param scope that suffices; `null`: none. */
const adminScopeGuard =
  (scope: string | null): Guard =>
  (request, _reply, done) => {
    const { adminKey } = request
    if (adminKey?.scopes === null || (scope !== null && adminKey?.scopes.includes(scope))) return done()
    // What this guard has refused must not look accepted to a later one.
    request.adminKey = null
    done(scope === null ? rootKeyRequired() : adminScopeRequired(scope))
  }

/** Adds what authentication stores in requests. */
export const decorateRequests = (app: FastifyInstance): void => {
  app.decorateRequest('accessToken', null)
  app.decorateRequest('accessTokenSource', undefined)
  app.decorateRequest('principal', null)
  app.decorateRequest('authenticatedBy', null)
  app.decorateRequest('authenticationFailure', null)
  app.decorateRequest('isScopeAccepted', false)
  app.decorateRequest('adminKey', null)
  app.decorateRequest('requirePrincipal', function requirePrincipal() {
    if (this.principal === null) throw new Error('This route is not private: it has no user')
    return this.principal
  })
  app.decorateRequest('user', {
    getter() {
      return this.requirePrincipal().cachedUser.user
    },
  })
}

/** The names of {@link decorateRequests}, and those of plugins that a value of a host would replace. */
export const REQUEST_DECORATORS = [
  'accessToken',
  'accessTokenSource',
  'principal',
  'authenticatedBy',
  'authenticationFailure',
  'isScopeAccepted',
  'adminKey',
  'requirePrincipal',
  'user',
  'validatedData',
  'clientAddress',
  'clientNetwork',
]

const badToken = (): ServiceError =>
  new ServiceError('signInRequired', {
    headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
    sampledAs: 'access-token',
  })
// RFC 6750 §3: no error code for requests without credentials.
const noToken = (): ServiceError =>
  new ServiceError('signInRequired', { headers: { 'www-authenticate': 'Bearer' }, quiet: true })

// Created once: capturing the stack, which is not used, took 15 % of such a request.
const BAD_TOKEN = badToken()
const NO_TOKEN = noToken()

/** @param logged how the error is logged. */
const noAdminKey = (logged: Pick<ErrorDetails, 'quiet' | 'sampledAs'>): ServiceError =>
  new ServiceError('adminKeyRequired', { headers: ADMIN_CHALLENGE, ...logged })

export interface RequestAuthenticationDeps {
  readonly authenticator: Authenticator
  readonly adminAuthenticator: AdminAuthenticator
  /** The scopes of API keys. */
  readonly userScopes: ScopeDescriptions
  /** The scopes of admin keys. */
  readonly adminScopes: ScopeDescriptions
  readonly allowedOrigins: readonly string[]
  /** Parses the `Cookie` header of routes outside of the service, whose requests have no `cookies`. */
  readonly parseCookie: (header: string) => Readonly<Record<string, string | undefined>>
}

export class RequestAuthentication implements Guards {
  readonly #deps: RequestAuthenticationDeps

  constructor(deps: RequestAuthenticationDeps) {
    this.#deps = deps
  }

  /** Authenticates by `request.accessToken`. Never fails: a failed lookup becomes `request.authenticationFailure`. */
  readonly authenticate = (request: FastifyRequest, done: () => void): void => {
    const { accessToken } = request
    request.authenticatedBy = this
    if (accessToken === null) return done()
    try {
      const found = this.#deps.authenticator.authenticate(accessToken)
      if (found instanceof Promise) return void this.#authenticateLater(request, found).then(() => done())
      request.principal = found
    } catch (error) {
      request.principal = null
      request.authenticationFailure = error
    }
    done()
  }

  /** Requires an authenticated user. The scopes of API keys must be checked next: {@link guardOfScope}. */
  readonly requirePrincipal: Guard = (request, _reply, done) => {
    // A route outside of the service, whose hooks have not run, or a route of another service.
    if (request.authenticatedBy !== this) return this.#authenticateOutside(request, done)
    const { principal } = request
    if (principal === null) return done(this.#errorOf(request, NO_TOKEN, BAD_TOKEN))
    if (this.#deps.authenticator.isCurrent(principal)) return done()
    // The user has changed since the last check. The body may have taken seconds, and the user may be disabled now.
    this.authenticate(request, () =>
      request.principal === null ? done(this.#errorOf(request, NO_TOKEN, BAD_TOKEN)) : done(),
    )
  }

  /**
   * For requests that have passed {@link requirePrincipal}. Sessions may do everything.
   * @param scope that API keys need; `null`: they are not accepted.
   */
  readonly guardOfScope = (scope: string | null): Guard => {
    const refusal = insufficientScope(scope)
    return scopeGuard(scope, () => refusal)
  }

  readonly requireUser: Guard = (request, reply, done) =>
    this.requirePrincipal(request, reply, error => {
      if (error !== undefined) return done(error)
      const isAccepted = !isApiKeyPrincipal(request.requirePrincipal()) || request.isScopeAccepted
      done(isAccepted ? undefined : insufficientScope(null))
    })

  readonly requireScope = (scope: string): Guard => {
    const problem = scopeProblem(this.#deps.userScopes, scope)
    if (problem !== null) throw new Error(`requireScope ${problem}`)
    const checkScope = scopeGuard(scope, () => insufficientScope(scope))
    return (request, reply, done) =>
      this.requirePrincipal(request, reply, error =>
        error === undefined ? checkScope(request, reply, done) : done(error),
      )
  }

  readonly requireRoles = (...roles: readonly string[]): Guard => {
    const problem = rolesProblem(roles)
    if (problem !== null) throw new Error(`requireRoles ${problem}`)
    const requireRole = roleGuard(roles, () => new ServiceError('roleRequired'))
    return (request, reply, done) =>
      this.requireUser(request, reply, error =>
        error === undefined ? requireRole(request, reply, done) : done(error),
      )
  }

  /** Requires an admin key, and sets `request.adminKey`. Its scopes must be checked next: {@link guardOfAdminScope}. */
  readonly authenticateAdmin: Guard = (request, _reply, done) => {
    if (request.adminKey !== null && this.#deps.adminAuthenticator.isCurrent(request.adminKey)) return done()
    request.adminKey = null
    const presented = request.headers[ADMIN_KEY_HEADER]
    if (typeof presented !== 'string') return done(noAdminKey({ quiet: true }))
    const use = (adminKey: PresentedAdminKey | null): void => {
      request.adminKey = adminKey
      done(adminKey === null ? noAdminKey({ sampledAs: 'admin-key' }) : undefined)
    }
    try {
      const found = this.#deps.adminAuthenticator.authenticate(presented)
      if (found instanceof Promise) return void found.then(use, done)
      use(found)
    } catch (error) {
      done(error as Error)
    }
  }

  /**
   * For requests that have passed {@link authenticateAdmin}. Root keys may do everything.
   * @param scope that keys of the store need; `null`: they are not accepted.
   */
  readonly guardOfAdminScope = adminScopeGuard

  readonly requireAdminKey: Guard = this.#adminGuard(null)

  readonly requireAdminScope = (scope: string): Guard => {
    const problem = scopeProblem(this.#deps.adminScopes, scope)
    if (problem !== null) throw new Error(`requireAdminScope ${problem}`)
    return this.#adminGuard(scope)
  }

  /** @param scope see {@link guardOfAdminScope}. */
  #adminGuard(scope: string | null): Guard {
    const checkScope = adminScopeGuard(scope)
    return (request, reply, done) =>
      this.authenticateAdmin(request, reply, error =>
        error === undefined ? checkScope(request, reply, done) : done(error),
      )
  }

  #authenticateOutside(request: FastifyRequest, done: (error?: Error) => void): void {
    // Otherwise the properties of the request would not be what the checks expect.
    if (request.accessToken === undefined)
      return done(
        new Error(
          'This route was added where Gatehouse is not registered: its guards work below their scope',
        ),
      )
    const { allowedOrigins, parseCookie } = this.#deps
    const { cookie } = request.raw.headers
    request.principal = null
    request.authenticationFailure = null
    request.isScopeAccepted = false
    extractAccessToken(request, cookie === undefined ? undefined : parseCookie(cookie)[ACCESS_TOKEN_COOKIE])
    this.authenticate(request, () => {
      // Errors of their own, because a host's error handler may change them.
      if (request.principal === null) return done(this.#errorOf(request, noToken(), badToken()))
      const refused = csrfError(request, allowedOrigins)
      if (refused === undefined) return done()
      // A later guard must not accept what this one has refused.
      request.principal = null
      request.authenticationFailure = refused
      done(refused)
    })
  }

  async #authenticateLater(request: FastifyRequest, lookup: Promise<Principal | null>): Promise<void> {
    try {
      request.principal = await lookup
    } catch (error) {
      request.principal = null
      request.authenticationFailure = error
    }
  }

  #errorOf({ authenticationFailure, accessToken }: FastifyRequest, missing: Error, bad: Error): Error {
    if (authenticationFailure !== null) return authenticationFailure as Error
    return accessToken === null ? missing : bad
  }
}
