/**
 * Introspection (RFC 7662) and revocation (RFC 7009) by clients. A client learns of its own tokens, and of those for resources that list it;
 * of every other token it learns as much as of an invented one.
 */
import type { ClientTokenClaims } from '#core/auth/access-tokens'
import type { ClientTokens } from '#feature/deps'
import { clientIdOf, type StoredClient } from './client.ts'
import type { Clients } from './clients.ts'
import type { OAuthDeps } from './definitions.ts'
import type { Grants } from './grants.ts'
import { isRefreshToken } from './refresh-tokens.ts'
import type { Resources } from './resources.ts'

export interface IntrospectedToken {
  readonly active: true
  readonly token_type: 'Bearer' | 'DPoP'
  readonly client_id: string
  readonly sub: string
  readonly scope: string
  readonly aud: string
  readonly iss: string
  readonly iat: number
  readonly exp: number
  readonly jti: string
  readonly sid?: string
  readonly auth_time?: number
  readonly cnf?: { readonly jkt: string }
  readonly org?: string
}

/** Of a refresh token, which has the times of its grant. */
export interface IntrospectedGrant {
  readonly active: true
  readonly client_id: string
  readonly sub: string
  readonly scope: string
  readonly iss: string
  readonly iat: number
  readonly exp: number
  readonly sid: string
  readonly auth_time: number
  readonly org?: string
}

export interface InactiveToken {
  readonly active: false
}

const INACTIVE: InactiveToken = { active: false }

const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1_000)

export class Introspection {
  readonly #deps: OAuthDeps
  readonly #clients: Clients
  readonly #resources: Resources
  readonly #grants: Grants
  readonly #signer: ClientTokens

  constructor(deps: OAuthDeps, clients: Clients, resources: Resources, grants: Grants, signer: ClientTokens) {
    this.#deps = deps
    this.#clients = clients
    this.#resources = resources
    this.#grants = grants
    this.#signer = signer
  }

  /** @param client that asks. */
  async introspect(
    token: string,
    client: StoredClient,
  ): Promise<IntrospectedToken | IntrospectedGrant | InactiveToken> {
    if (isRefreshToken(token)) return this.#introspectRefresh(token, client)
    const claims = this.#signer.inspect(token)
    if (claims === null || this.#deps.clock() >= claims.expiresAt) return INACTIVE
    if (!(await this.#mayKnow(client, claims)) || !(await this.#isLive(claims))) return INACTIVE
    const { grantId, authenticatedAt, jkt, organization } = claims
    return {
      active: true,
      token_type: jkt === null ? 'Bearer' : 'DPoP',
      client_id: await this.#nameOf(claims.clientId),
      sub: claims.subject,
      scope: claims.scopes.join(' '),
      aud: claims.audience,
      iss: this.#deps.config.publicUrl,
      iat: seconds(claims.issuedAt),
      exp: seconds(claims.expiresAt),
      jti: claims.tokenId,
      ...(grantId !== null && { sid: grantId }),
      ...(authenticatedAt !== null && { auth_time: seconds(authenticatedAt) }),
      ...(jkt !== null && { cnf: { jkt } }),
      ...(organization !== null && { org: organization }),
    }
  }

  async #introspectRefresh(token: string, client: StoredClient): Promise<IntrospectedGrant | InactiveToken> {
    const found = await this.#grants.inspect(token, client)
    if (found === null) return INACTIVE
    const { grant, userId } = found
    if (grant.organization !== null && !(await this.#isMember(userId, grant.organization))) return INACTIVE
    return {
      active: true,
      client_id: clientIdOf(client),
      sub: userId,
      scope: grant.scopes.join(' '),
      iss: this.#deps.config.publicUrl,
      iat: seconds(grant.createdAt),
      exp: seconds(grant.expiresAt),
      sid: grant.id,
      auth_time: seconds(grant.authenticatedAt),
      ...(grant.organization !== null && { org: grant.organization }),
    }
  }

  /** Ends a token that was issued to the client, everywhere; with a refresh token its grant. Any other text changes nothing. */
  async revoke(token: string, client: StoredClient): Promise<void> {
    if (isRefreshToken(token)) return this.#grants.revokeByToken(token, client)
    const claims = this.#signer.inspect(token)
    if (claims === null || claims.clientId !== client.id) return
    // Also one that was revoked before: that request may still wait for other processes.
    await this.#deps.store.revokeToken(claims.tokenId, claims.expiresAt, claims.subject)
  }

  async #nameOf(id: string): Promise<string> {
    const client = await this.#clients.find(id)
    return client === undefined ? id : clientIdOf(client)
  }

  async #isMember(userId: string, organization: string): Promise<boolean> {
    return (await this.#deps.memberships()?.find(userId, organization)) !== undefined
  }

  async #mayKnow(client: StoredClient, { clientId, audience }: ClientTokenClaims): Promise<boolean> {
    if (clientId === client.id) return true
    return (await this.#resources.find(audience))?.clientIds.includes(client.id) ?? false
  }

  async #isLive({ clientId, grantId, tokenId, subject, organization }: ClientTokenClaims): Promise<boolean> {
    const { store, clock, config } = this.#deps
    const now = clock()
    if (organization !== null && !(await this.#isMember(subject, organization))) return false
    return grantId === null
      ? store.isClientToken(clientId, tokenId)
      : store.isGrantToken(grantId, tokenId, subject, now, now - config.sessionIdle)
  }
}
