/**
 * Authentication of requests, and the guards that require it: hook functions for the scopes of `routes/` and for routes of a host
 * application.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type ErrorDetails, ServiceError } from '#base/errors'
import { organizationIn } from '#core/auth/access-tokens'
import type { AdminAuthenticator } from '#core/auth/admin-authenticator'
import type { PresentedAdminKey } from '#core/auth/admin-key'
import type { Authenticator } from '#core/auth/authenticator'
import type { ClientAccess, ClientAuthenticator, PresentedClient } from '#core/auth/client-authenticator'
import type { Proofs } from '#core/auth/dpop'
import { isApiKeyPrincipal, type Principal } from '#core/auth/principal'
import type { ScopeDescriptions } from '#core/auth/scopes'
import type { User } from '#core/users/user'
import { ADMIN_CHALLENGE, ADMIN_KEY_HEADER } from './admin-key-header.ts'
import { csrfError } from './cross-site-requests.ts'
import { boundTokenError, ProofChecks } from './proof-checks.ts'
import {
  adminScopeGuard,
  clientAccessProblem,
  fieldScopeGuard,
  type Guard,
  inSequence,
  insufficientScope,
  roleGuard,
  rolesProblem,
  scopeGuard,
  scopeProblem,
} from './route-access.ts'
import { bearerToken, type CookieParser, extractAccessToken } from './token-extraction.ts'

export type { Guard } from './route-access.ts'

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
    /** The organization that the token of a client is limited to, by its claim `org`; `null`: none. */
    readonly tokenOrganization: string | null
    /** Whose principal it is: a host may have several services. `null` before authentication. */
    authenticatedBy: RequestAuthentication | null
    /** The error of a failed token lookup. `requireUser` fails with it; public routes continue anonymously. */
    authenticationFailure: unknown
    /** Whether a guard has accepted the API key by its scopes. Other guards reject API keys until then. */
    isApiKeyAccepted: boolean
    /** The admin key, on admin routes and behind the guards of admin keys; else `null`. */
    adminKey: PresentedAdminKey | null
    /** The client whose own token opens the route, on routes with `config.client` and behind `requireClient`; else `null`. */
    client: PresentedClient | null
  }
  interface FastifyContextConfig {
    /** Whether requests whose cookies name several users may call it, as the first of them: the route that signs them out. */
    isOpenToSeveralUsers?: true
  }
}

export interface Guards {
  /** Requires an authenticated user with a session, and sets `request.user` and `request.principal`. */
  readonly requireUser: Guard
  /**
   * Requires a user with a session or an API key with this scope, and sets `request.user` and `request.principal`.
   * @throws {Error} if there is no such scope.
   */
  requireScope(scope: string): Guard
  /**
   * Requires a user with a session and any of these roles. After `requireScope` it also accepts API keys.
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
  /**
   * Requires a token that a client of the authorization server has for itself, as `Authorization: Bearer`, and sets `request.client`. Tokens of
   * users, API keys and cookies are refused.
   * @throws {Error} if there is no such scope of admin keys, for a route without a resource.
   */
  requireClient(access: ClientAccess): Guard
}

/** What authentication stores in requests, with its values before. */
const STORED = {
  accessToken: null,
  accessTokens: null,
  accessTokenSource: undefined,
  principal: null,
  authenticatedBy: null,
  authenticationFailure: null,
  isApiKeyAccepted: false,
  adminKey: null,
  client: null,
}

/** Adds what authentication stores in requests. */
export const decorateRequests = (app: FastifyInstance): void => {
  for (const [name, value] of Object.entries(STORED)) app.decorateRequest(name, value)
  app.decorateRequest('requirePrincipal', function requirePrincipal() {
    if (this.principal === null) throw new Error('This route is not private: it has no user')
    return this.principal
  })
  app.decorateRequest('user', {
    getter() {
      return this.requirePrincipal().cachedUser.user
    },
  })
  app.decorateRequest('tokenOrganization', {
    getter(this: FastifyRequest) {
      const { principal } = this
      return principal === null || principal.client === null ? null : organizationIn(principal.token)
    },
  })
}

/** The names of {@link decorateRequests}, and those of plugins that a value of a host would replace. */
export const REQUEST_DECORATORS = [
  ...Object.keys(STORED),
  ...['requirePrincipal', 'user', 'tokenOrganization'],
  ...['validatedData', 'clientAddress', 'clientNetwork', 'hostCookie'],
]

/** The errors of requests without a valid token. @param metadata the URL of what the resource says of itself (RFC 9728 §5.1); `null`: none. */
const tokenErrors = (metadata: string | null) => {
  const parameters = metadata === null ? [] : [`resource_metadata="${metadata}"`]
  const challenge = (...all: readonly string[]) => ({
    headers: { 'www-authenticate': ['Bearer', all.join(', ')].filter(text => text !== '').join(' ') },
  })
  const invalid = { ...challenge('error="invalid_token"', ...parameters), sampledAs: 'access-token' }
  // RFC 6750 §3: no error code for requests without credentials.
  const missing = { ...challenge(...parameters), quiet: true }
  return {
    invalid,
    badToken: () => new ServiceError('signInRequired', invalid),
    noToken: () => new ServiceError('signInRequired', missing),
  }
}

type TokenErrors = ReturnType<typeof tokenErrors>

/** Whether the cookies of a request name several users, so that it is anonymous. */
export const namesSeveralUsers = ({ authenticationFailure }: FastifyRequest): boolean =>
  authenticationFailure instanceof ServiceError && authenticationFailure.code === 'severalUsers'

/** @param logged how the error is logged. */
const noAdminKey = (logged: Pick<ErrorDetails, 'quiet' | 'sampledAs'>): ServiceError =>
  new ServiceError('adminKeyRequired', { headers: ADMIN_CHALLENGE, ...logged })

/** @returns where the metadata of a resource are (RFC 9728); `null`: nowhere. @param resource its identifier; `null`: the service itself. */
export type ResourceMetadata = (resource: string | null) => string | null

export interface RequestAuthenticationDeps {
  readonly authenticator: Authenticator
  readonly adminAuthenticator: AdminAuthenticator
  readonly clientAuthenticator: ClientAuthenticator
  readonly resourceMetadata: ResourceMetadata | null
  /** The scopes of API keys. */
  readonly userScopes: ScopeDescriptions
  /** The scopes of admin keys. */
  readonly adminScopes: ScopeDescriptions
  readonly allowedOrigins: readonly string[]
  /** Verifies proofs of possession. */
  readonly proofs: Proofs
  readonly publicUrl: string
  /** Now, in milliseconds since the epoch. */
  readonly clock: () => number
  /** Parses the `Cookie` header of routes outside of the service, whose requests have no `cookies`. */
  readonly parseCookie: CookieParser
}

export class RequestAuthentication implements Guards {
  readonly #deps: RequestAuthenticationDeps
  readonly #proofs: ProofChecks
  readonly #errors: TokenErrors

  constructor(deps: RequestAuthenticationDeps) {
    this.#deps = deps
    this.#proofs = new ProofChecks(deps)
    this.#errors = this.#errorsFor(null)
  }

  /** Authenticates by `request.accessToken`, or one of `accessTokens`. Never fails: a failed lookup becomes `request.authenticationFailure`. */
  readonly authenticate = (request: FastifyRequest, done: () => void): void => {
    const { accessToken, accessTokens } = request
    request.authenticatedBy = this
    if (accessToken === null) return done()
    if (request.accessTokenSource === 'proof')
      return void this.#authenticateBound(request, accessToken).then(() => done())
    if (accessTokens !== null)
      return void this.#authenticateLater(request, this.#authenticateByOneOf(request, accessTokens)).then(
        () => done(),
      )
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

  /** Requires an authenticated user. The scopes of API keys must be checked next: `scopeGuard`. */
  readonly authenticateUser: Guard = (request, _reply, done) => {
    // A route outside of the service, whose hooks have not run, or a route of another service.
    if (request.authenticatedBy !== this) return this.#authenticateOutside(request, done)
    const { principal } = request
    if (principal === null) return done(this.#errorOf(request))
    if (this.#deps.authenticator.isCurrent(principal)) return done()
    // The user has changed since the last check. The body may have taken seconds, and the user may be disabled now.
    this.authenticate(request, () => (request.principal === null ? done(this.#errorOf(request)) : done()))
  }

  /** For requests that have passed {@link authenticateUser}: API keys need the scope that the route declares. */
  readonly requireRouteScope: Guard = (request, reply, done) => {
    if (request.requirePrincipal().scopes === null) return done()
    scopeGuard(request.routeOptions.config.scope ?? null)(request, reply, done)
  }

  readonly requireUser: Guard = (request, reply, done) =>
    this.authenticateUser(request, reply, error => {
      if (error !== undefined) return done(error)
      const isAccepted = !isApiKeyPrincipal(request.requirePrincipal()) || request.isApiKeyAccepted
      done(isAccepted ? undefined : insufficientScope(null))
    })

  readonly requireScope = (scope: string): Guard => {
    const problem = scopeProblem(this.#deps.userScopes, scope)
    if (problem !== null) throw new Error(`requireScope ${problem}`)
    return inSequence(this.authenticateUser, scopeGuard(scope))
  }

  readonly requireRoles = (...roles: readonly string[]): Guard => {
    const problem = rolesProblem(roles)
    if (problem !== null) throw new Error(`requireRoles ${problem}`)
    return inSequence(
      this.requireUser,
      roleGuard(roles, () => new ServiceError('roleRequired')),
    )
  }

  /** Requires an admin key, and sets `request.adminKey`. Its scopes must be checked next: `adminScopeGuard`. */
  readonly authenticateAdmin: Guard = (request, _reply, done) => {
    const { adminKey: confirmed } = request
    const presented = request.headers[ADMIN_KEY_HEADER]
    request.adminKey = null
    if (typeof presented !== 'string') return done(noAdminKey({ quiet: true }))
    if (confirmed !== null && this.#deps.adminAuthenticator.isCurrent(confirmed)) {
      request.adminKey = confirmed
      return done()
    }
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

  /** Whether the admin key of a request is still valid. For streams, which may last hours. @throws {ServiceError} `storeUnavailable` */
  async isAdmin(request: FastifyRequest): Promise<boolean> {
    const { adminAuthenticator } = this.#deps
    if (request.adminKey !== null && adminAuthenticator.isCurrent(request.adminKey)) return true
    request.adminKey = await adminAuthenticator.authenticate(String(request.headers[ADMIN_KEY_HEADER]))
    return request.adminKey !== null
  }

  /**
   * Whether the access token of a request is still valid. For streams, which may last hours. It does not count as a request, so the idle
   * time of the session goes on.
   * @throws {ServiceError} `storeUnavailable`
   */
  async isUser(request: FastifyRequest): Promise<boolean> {
    const { accessToken } = request
    return accessToken !== null && (await this.#deps.authenticator.introspect(accessToken)) !== null
  }

  /** The sessions that a request presents: that of its user, and with several cookies any other one that is valid. */
  async sessionsOf(request: FastifyRequest): Promise<readonly Principal[]> {
    const { accessTokens } = request
    return accessTokens === null ? [request.requirePrincipal()] : this.#principalsOf(accessTokens)
  }

  /**
   * For streams, which may last hours: yields the batches as long as the admin key of the request is valid.
   * @throws {ServiceError} `adminKeyRequired`, `storeUnavailable`
   */
  async *whileAdmin<Batch>(request: FastifyRequest, batches: AsyncIterable<Batch>): AsyncGenerator<Batch> {
    for await (const batch of batches) {
      if (!(await this.isAdmin(request))) throw noAdminKey({ sampledAs: 'admin-key' })
      yield batch
    }
  }

  /** For requests that have passed {@link authenticateAdmin}: keys of the store need a scope that the route declares. */
  readonly requireAdminRouteScope: Guard = (request, reply, done) => {
    if (request.adminKey?.scopes === null) return done()
    const { scope = null, fieldScopes = {} } = request.routeOptions.config
    adminScopeGuard(scope, Object.values(fieldScopes))(request, reply, done)
  }

  /** After validation: keys of the store need the scope of each property of the body. */
  readonly requireAdminFieldScopes: Guard = (request, reply, done) => {
    const { scope, fieldScopes } = request.routeOptions.config
    if (scope === undefined || fieldScopes === undefined) return done()
    fieldScopeGuard(scope, fieldScopes)(request, reply, done)
  }

  readonly requireAdminKey: Guard = inSequence(this.authenticateAdmin, adminScopeGuard(null))

  readonly requireAdminScope = (scope: string): Guard => {
    const problem = scopeProblem(this.#deps.adminScopes, scope)
    if (problem !== null) throw new Error(`requireAdminScope ${problem}`)
    return inSequence(this.authenticateAdmin, adminScopeGuard(scope))
  }

  readonly requireClient = (access: ClientAccess): Guard => {
    const problem = clientAccessProblem(this.#deps.adminScopes, access)
    if (problem !== null) throw new Error(`requireClient ${problem}`)
    const errors = this.#errorsFor(access.resource ?? null)
    return (request, _reply, done) =>
      void this.#clientOf(request, access, errors).then(
        client => {
          request.client = client
          done()
        },
        (error: Error) => {
          request.client = null
          done(error)
        },
      )
  }

  /** @throws {ServiceError} `signInRequired`, `scopeRequired`, `storeUnavailable` */
  async #clientOf(
    { client, headers }: FastifyRequest,
    access: ClientAccess,
    { noToken, badToken }: TokenErrors,
  ): Promise<PresentedClient> {
    const { clientAuthenticator } = this.#deps
    const token = bearerToken(headers.authorization ?? '')
    if (token === '') throw noToken()
    const found =
      client === null
        ? await clientAuthenticator.authenticate(token)
        : await clientAuthenticator.confirm(client)
    if (found === null || !clientAuthenticator.isFor(found, access)) throw badToken()
    if (!found.scopes.includes(access.scope)) throw insufficientScope(access.scope)
    return found
  }

  #errorsFor(resource: string | null): TokenErrors {
    return tokenErrors(this.#deps.resourceMetadata?.(resource) ?? null)
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
    request.isApiKeyAccepted = false
    extractAccessToken(request, cookie === undefined ? {} : parseCookie(cookie), parseCookie)
    this.authenticate(request, () => {
      if (request.principal === null) return done(this.#errorOf(request))
      const refused = csrfError(request, allowedOrigins)
      if (refused === undefined) return done()
      // A later guard must not accept what this one has refused.
      request.principal = null
      request.authenticationFailure = refused
      done(refused)
    })
  }

  /** The valid ones of several tokens. API keys count if there is no session: a planted one must not replace it. */
  async #principalsOf(tokens: readonly string[]): Promise<readonly Principal[]> {
    const found: Principal[] = []
    for (const token of tokens) {
      const principal = await this.#deps.authenticator.introspect(token)
      if (principal !== null) found.push(principal)
    }
    const sessions = found.filter(principal => !isApiKeyPrincipal(principal))
    return sessions.length > 0 ? sessions : found
  }

  /** @throws {ServiceError} `severalUsers`, `storeUnavailable` */
  async #authenticateByOneOf(request: FastifyRequest, tokens: readonly string[]): Promise<Principal | null> {
    const [first, ...others] = await this.#principalsOf(tokens)
    if (first === undefined) return null
    const { id } = first.cachedUser.user
    if (others.some(({ cachedUser }) => cachedUser.user.id !== id)) {
      // No sign-out ends API keys. Only the page to sign in helps: a session replaces them.
      if (isApiKeyPrincipal(first)) return null
      if (request.routeOptions.config.isOpenToSeveralUsers !== true)
        throw new ServiceError('severalUsers', this.#errors.invalid)
    }
    request.accessToken = first.token
    return this.#deps.authenticator.authenticate(first.token)
  }

  async #authenticateLater(request: FastifyRequest, lookup: Promise<Principal | null>): Promise<void> {
    try {
      request.principal = await lookup
    } catch (error) {
      request.principal = null
      request.authenticationFailure = error
    }
  }

  /** A token that is bound to a key: its request has a proof of possession. */
  async #authenticateBound(request: FastifyRequest, accessToken: string): Promise<void> {
    await this.#authenticateLater(request, this.#boundPrincipal(request, accessToken))
  }

  /** @throws {ServiceError} `signInRequired`, `storeUnavailable` */
  async #boundPrincipal(request: FastifyRequest, accessToken: string): Promise<Principal> {
    const principal = await this.#deps.authenticator.authenticate(accessToken)
    if (principal === null) throw boundTokenError('invalid_token')
    this.#proofs.check(request, accessToken)
    return principal
  }

  #errorOf({ authenticationFailure, accessToken }: FastifyRequest): Error {
    if (authenticationFailure !== null) return authenticationFailure as Error
    return accessToken === null ? this.#errors.noToken() : this.#errors.badToken()
  }
}
