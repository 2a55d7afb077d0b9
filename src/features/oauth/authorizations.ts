/**
 * The code flow (RFC 6749 §4.1): a client asks, the user decides, and the client redeems the code. A request is one row, which becomes the
 * code, and is redeemed in the transaction that creates the grant.
 */
import { createHash } from 'node:crypto'
import { isMultiFactor } from '#core/accounts/sign-in-methods'
import type { Principal } from '#core/auth/principal'
import { needsCode } from '#core/users/factors'
import { type Actor, actingUser, ServiceError } from '#feature/declaration'
import type { NamedOrganization } from '#feature/deps'
import {
  type AuthorizationParameters,
  type AuthorizationRequest,
  isError,
  knownScopes,
  type RequestError,
} from './authorization-request.ts'
import { type Client, isPublic, type StoredClient } from './client.ts'
import type { Clients } from './clients.ts'
import { ERRORS, type OAuthDeps } from './definitions.ts'
import type { Grant } from './grant.ts'
import { organizationOfToken } from './granted-organizations.ts'
import type { GrantedAccess, Grants } from './grants.ts'
import type { MetadataClients } from './metadata-clients.ts'
import { isPushed, type PushedRequests } from './pushed-requests.ts'
import { isOfDevice, isRegistered } from './redirect-uris.ts'
import type { RequestReader } from './request-reader.ts'
import { digestOf, newToken } from './request-tokens.ts'
import type { Resources } from './resources.ts'

/** Milliseconds. */
const REQUEST_LIFETIME = 600_000
const CODE_LIFETIME = 60_000

/** What the browser does next. */
export type Step =
  | { readonly kind: 'page'; readonly request: string; readonly locales: readonly string[] }
  | { readonly kind: 'client'; readonly url: string }

/** What a request needs before the client gets a code. */
export type Need =
  /** `isAgain`: also of a user who is signed in, by another method. */
  | { readonly kind: 'signIn'; readonly isAgain: boolean; readonly loginHint: string | null }
  | { readonly kind: 'proof' }
  | {
      readonly kind: 'consent'
      readonly client: Client
      readonly request: AuthorizationRequest
      readonly scopes: ConsentScopes
      readonly organizations: ConsentOrganizations
    }
  | { readonly kind: 'client'; readonly url: string }

/** What a code is redeemed for, with what an ID token says of the sign-in. */
export interface RedeemedCode extends GrantedAccess {
  /** In which the user has decided. */
  readonly sessionId: string
  readonly amr: readonly string[]
  /** Of the request. */
  readonly nonce: string | null
}

/** What a client redeems a code with. */
export interface Redemption {
  readonly redirectUri: string | undefined
  readonly verifier: string | undefined
  /** The organization that the access token is to be limited to. */
  readonly organization: string | undefined
  /** The key of the request; `null`: it had none. */
  readonly jkt: string | null
}

/** What the user can limit the access to. */
export type ConsentOrganizations =
  /** The request names the organization. */
  | { readonly kind: 'named'; readonly organization: NamedOrganization }
  /** Empty: the user has none, or the access does not concern organizations. */
  | { readonly kind: 'choice'; readonly organizations: readonly NamedOrganization[] }

/** What is asked for, with words. */
export type ConsentScopes = readonly (readonly [scope: string, description: string])[]

const challengeOf = (verifier: string): string => createHash('sha256').update(verifier).digest('base64url')

const NOT_PUSHED: RequestError = {
  error: 'invalid_request',
  description: 'The client must push its requests (RFC 9126)',
}

/** RFC 7636 §4.1. */
const VERIFIER = /^[\w.~-]{43,128}$/

/** The session of a browser that a person is signed in with: no API key, no grant, no administrator who acts as the user. */
export const sessionOf = (principal: Principal | null): Principal | null =>
  principal === null || principal.scopes !== null || principal.impersonatedBy !== null ? null : principal

interface AuthorizationParts {
  readonly clients: Clients
  readonly metadataClients: MetadataClients
  readonly resources: Resources
  readonly grants: Grants
  readonly reader: RequestReader
  readonly pushedRequests: PushedRequests
}

export class Authorizations {
  readonly #deps: OAuthDeps
  readonly #parts: AuthorizationParts

  constructor(deps: OAuthDeps, parts: AuthorizationParts) {
    this.#deps = deps
    this.#parts = parts
  }

  /**
   * Begins a request. It changes nothing for anybody who is signed in.
   * @throws {ServiceError} `unknownClient`, `unknownRedirectUri`, `unknownRequestUri`: the browser must not be sent to the client.
   */
  async begin(parameters: AuthorizationParameters): Promise<Step> {
    const { store, clock } = this.#deps
    const { metadataClients, reader, pushedRequests } = this.#parts
    const client = await metadataClients.find(parameters.client_id ?? '')
    const token = newToken()
    if (isPushed(parameters.request_uri)) {
      const { locales } = await pushedRequests.take(parameters.request_uri, client, token, REQUEST_LIFETIME)
      return { kind: 'page', request: token, locales }
    }
    const { redirectUri, read } = await reader.read(parameters, client)
    const to = { redirectUri, state: parameters.state ?? null }
    if (isError(read)) return this.#refused(to, read)
    if (client.requirePushedRequests) return this.#refused(to, NOT_PUSHED)
    await store.addRequest(digestOf(token), read, clock() + REQUEST_LIFETIME)
    return { kind: 'page', request: token, locales: read.locales }
  }

  /**
   * What a pending request needs next. Reading it changes nothing, unless the user need not be asked.
   * @throws {ServiceError} `requestNotFound`
   */
  async need(token: string, principal: Principal | null): Promise<Need> {
    const { request, client } = await this.#pending(token)
    const need = await this.#needOf(token, request, client, principal)
    if (need.kind === 'client' || !request.prompt.includes('none')) return need
    const error = need.kind === 'consent' ? 'consent_required' : 'login_required'
    await this.#deps.store.denyRequest(digestOf(token))
    return this.#refused(request, { error, description: 'The user must be asked' })
  }

  async #needOf(
    token: string,
    request: AuthorizationRequest,
    client: StoredClient,
    principal: Principal | null,
  ): Promise<Need> {
    const session = sessionOf(principal)
    const { loginHint } = request
    if (session === null) return { kind: 'signIn', isAgain: false, loginHint }
    if (this.#mustProve(request, session)) return { kind: 'proof' }
    if (lacksFactor(request, session)) return this.#secondFactor(token, request, session)
    const organizations = await this.#organizationsOf(request, session)
    if (organizations === null) return this.#endForeign(token, request)
    const agreed = await this.#agreed(client, request, session)
    if (agreed !== null) return this.#allow(token, request, client, session, agreed.organization)
    const resource = request.resource === null ? null : await this.#parts.resources.find(request.resource)
    const known = knownScopes(resource ?? null, this.#deps.userScopes)
    const scopes = request.scopes.map((scope): [string, string] => [scope, known[scope] ?? scope])
    return { kind: 'consent', client, request, scopes, organizations }
  }

  /**
   * The user allows what a request asks for.
   * @param chosen the id of the organization that the access is limited to; `null`: none, unless the request names one.
   * @returns where the browser goes. @throws {ServiceError} `requestNotFound`, `signInRequired`, `invalidOrganization`
   */
  async allow(token: string, principal: Principal | null, chosen: string | null = null): Promise<string> {
    const { request, client } = await this.#pending(token)
    const session = sessionOf(principal)
    if (session === null || this.#mustProve(request, session) || lacksFactor(request, session))
      throw new ServiceError('signInRequired')
    const organization = request.organization ?? chosen
    if (organization !== null && (await this.#membershipOf(session, organization)) === undefined)
      throw new ServiceError(ERRORS.invalidOrganization)
    return (await this.#allow(token, request, client, session, organization)).url
  }

  /** The user denies it. @returns where the browser goes. @throws {ServiceError} `requestNotFound` */
  async deny(token: string): Promise<string> {
    const { request } = await this.#pending(token)
    if (!(await this.#deps.store.denyRequest(digestOf(token)))) throw new ServiceError(ERRORS.requestNotFound)
    return this.#refused(request, { error: 'access_denied', description: 'The user has denied it' }).url
  }

  /**
   * Redeems a code.
   * @param given `organization`: that the access token is to be limited to.
   * @throws {ServiceError} `invalidGrant`, `invalidOrganization`
   */
  async redeem(code: string, given: Redemption, client: StoredClient): Promise<RedeemedCode> {
    const { store, clock, config, newEvent } = this.#deps
    const digest = digestOf(code)
    const found = await store.findCode(digest)
    // A code of another client stays valid for its own.
    if (found === undefined || found.request.clientId !== client.id) throw invalidGrant()
    const { request, decision, userId, state, grantId } = found
    if (decision === null || userId === null) throw invalidGrant()
    const actor: Actor = { type: 'client', id: client.id, ip: null }
    if (state === 'used') {
      if (grantId !== null) await this.#parts.grants.end(grantId, userId, actor, false)
      throw invalidGrant()
    }
    if (!isRedirectOf(request, given.redirectUri) || !isVerified(request, given.verifier, client))
      throw invalidGrant()
    // A request of a former release has none.
    if ((request.jkt ?? null) !== null && request.jkt !== given.jkt) throw invalidGrant()
    const granted = decision.organization
    const organization = await organizationOfToken(this.#deps, userId, granted, given.organization)
    const { grant, refreshToken } = this.#parts.grants.create(client, request.resource, decision, given.jkt)
    const event = newEvent('grant.created', actor, userId, { grant: grant.id, client: client.id })
    const kept = clock() + REQUEST_LIFETIME
    const outcome = await store.redeemCode(digest, grant, decision, config.sessionIdle, kept, event)
    if (outcome !== 'redeemed') throw invalidGrant()
    await this.#parts.grants.announce(grant, userId, client)
    return {
      ...{ grant, userId, organization, refreshToken },
      ...{ sessionId: decision.sessionId, amr: decision.amr, nonce: request.nonce },
    }
  }

  /** @throws {ServiceError} `requestNotFound` */
  async #pending(token: string): Promise<{ request: AuthorizationRequest; client: StoredClient }> {
    const found = await this.#deps.store.findRequest(digestOf(token))
    if (found?.state !== 'pending' || found.expiresAt <= this.#deps.clock())
      throw new ServiceError(ERRORS.requestNotFound)
    const { request } = found
    const client =
      request.clientUrl === undefined
        ? await this.#parts.clients.find(request.clientId)
        : await this.#parts.metadataClients.find(request.clientUrl)
    // It may have changed meanwhile.
    if (client === undefined || client.blocked || !isRegistered(request.redirectUri, client.redirectUris))
      throw new ServiceError(ERRORS.requestNotFound)
    return { request, client }
  }

  #mustProve({ prompt, maxAge, requestedAt }: AuthorizationRequest, { authenticatedAt }: Principal): boolean {
    if (prompt.includes('login') && authenticatedAt < requestedAt) return true
    return maxAge !== null && authenticatedAt + maxAge * 1_000 < requestedAt
  }

  /** How the user gets to the two factors that a request needs; without a second one the request ends (RFC 9470 §5). */
  async #secondFactor(token: string, request: AuthorizationRequest, session: Principal): Promise<Need> {
    const { user } = session.cachedUser
    // Beside nothing that is known, a code is no second factor.
    if (needsCode(user) && session.amr.length > 0) return { kind: 'proof' }
    if (user.factors.length > 0) return { kind: 'signIn', isAgain: true, loginHint: user.email }
    await this.#deps.store.denyRequest(digestOf(token))
    return this.#refused(request, {
      error: 'unmet_authentication_requirements',
      description: 'The user has no second factor',
    })
  }

  /** @returns `null` if the request names an organization that the user is no member of. */
  async #organizationsOf(
    { organization: id, scopes, resource }: AuthorizationRequest,
    session: Principal,
  ): Promise<ConsentOrganizations | null> {
    if (id !== null) {
      const organization = await this.#membershipOf(session, id)
      return organization === undefined ? null : { kind: 'named', organization }
    }
    const isOffered = resource !== null || scopes.some(scope => scope.startsWith('organizations:'))
    const organizations = isOffered
      ? await this.#deps.memberships()?.list(session.cachedUser.user.id)
      : undefined
    return { kind: 'choice', organizations: organizations ?? [] }
  }

  async #membershipOf({ cachedUser }: Principal, id: string): Promise<NamedOrganization | undefined> {
    return this.#deps.memberships()?.find(cachedUser.user.id, id)
  }

  async #endForeign(token: string, request: AuthorizationRequest) {
    await this.#deps.store.denyRequest(digestOf(token))
    return this.#refused(request, {
      error: 'access_denied',
      description: 'The user is not a member of the organization',
    })
  }

  /**
   * Why the user need not be asked: they have agreed before, or an administrator vouches for the client.
   * @returns the organization that the access is limited to; `null`: the user must be asked.
   */
  async #agreed(
    client: Client,
    request: AuthorizationRequest,
    session: Principal,
  ): Promise<Pick<Grant, 'organization'> | null> {
    // The page names the account, and leads to others.
    if (request.prompt.includes('consent') || request.prompt.includes('select_account')) return null
    if (client.firstParty && !isOfDevice(request.redirectUri)) return request
    return isRemembered(client, request) ? this.#agreedBefore(request, session) : null
  }

  async #agreedBefore(
    { clientId, scopes, resource, organization }: AuthorizationRequest,
    session: Principal,
  ): Promise<Pick<Grant, 'organization'> | null> {
    const grants = await this.#deps.store.listGrants(session.cachedUser.user.id, this.#deps.clock())
    const found = grants.find(
      grant =>
        grant.clientId === clientId &&
        grant.resource === resource &&
        (organization === null || grant.organization === null || grant.organization === organization) &&
        scopes.every(scope => grant.scopes.includes(scope)),
    )
    if (found === undefined) return null
    const limited = organization ?? found.organization
    const isValid = limited === null || (await this.#membershipOf(session, limited)) !== undefined
    return isValid ? { organization: limited } : null
  }

  /** @throws {ServiceError} `requestNotFound` if it was decided at the same time. */
  async #allow(
    token: string,
    request: AuthorizationRequest,
    client: StoredClient,
    session: Principal,
    organization: string | null,
  ) {
    const { store, clock } = this.#deps
    const code = newToken()
    const now = clock()
    const decision = {
      scopes: request.scopes,
      organization,
      sessionId: session.credentialId,
      authenticatedAt: session.authenticatedAt,
      amr: session.amr,
    }
    const { id: userId } = session.cachedUser.user
    if (!(await this.#parts.metadataClients.keep(client, actingUser(userId, null))))
      throw new ServiceError(ERRORS.requestNotFound)
    const isFirst = await store.allowRequest(
      ...([digestOf(token), userId, digestOf(code)] as const),
      ...([decision, now + CODE_LIFETIME, now] as const),
    )
    if (!isFirst) throw new ServiceError(ERRORS.requestNotFound)
    return this.#toClient(request, { code })
  }

  #refused(to: Pick<AuthorizationRequest, 'redirectUri' | 'state'>, { error, description }: RequestError) {
    return this.#toClient(to, { error, error_description: description })
  }

  /** RFC 9207: every response names the issuer. */
  #toClient(
    { redirectUri, state }: Pick<AuthorizationRequest, 'redirectUri' | 'state'>,
    parameters: Readonly<Record<string, string>>,
  ): { readonly kind: 'client'; readonly url: string } {
    const added = new URLSearchParams({
      ...parameters,
      ...(state !== null && { state }),
      iss: this.#deps.config.publicUrl,
    })
    const separator = redirectUri.includes('?') ? (/[?&]$/.test(redirectUri) ? '' : '&') : '?'
    return { kind: 'client', url: `${redirectUri}${separator}${added}` }
  }
}

const lacksFactor = ({ needsTwoFactors }: AuthorizationRequest, { amr }: Principal): boolean =>
  needsTwoFactors && !isMultiFactor(amr)

export const invalidGrant = (): ServiceError =>
  new ServiceError(ERRORS.invalidGrant, { sampledAs: 'oauth-grant' })

/** Whether an earlier consent counts: another program on the user's machine cannot pretend to be a client with a secret. */
const isRemembered = (client: Client, { redirectUri }: AuthorizationRequest): boolean =>
  !isPublic(client) || !isOfDevice(redirectUri)

/** RFC 6749 §4.1.3: the same, if the authorization request named it. */
const isRedirectOf = (request: AuthorizationRequest, given: string | undefined): boolean =>
  given === undefined ? !request.isRedirectUriGiven : given === request.redirectUri

const isVerified = (
  { codeChallenge }: AuthorizationRequest,
  verifier: string | undefined,
  client: Client,
): boolean => {
  if (codeChallenge === null) return verifier === undefined && !client.requirePkce && !isPublic(client)
  return verifier !== undefined && VERIFIER.test(verifier) && challengeOf(verifier) === codeChallenge
}
