/**
 * Verifies tokens that clients have for themselves, for routes of a host (`config.client`). A token is looked up once; afterwards a request
 * costs its signature. What ends a token or its client drops all known tokens of the client, before it is acknowledged.
 */
import type { ClientStore } from '../store/store.ts'
import type { AccessTokens, ClientTokenClaims } from './access-tokens.ts'
import type { FoundClient } from './client-tokens.ts'
import type { IdCache, OpenCache } from './feature-caches.ts'

/** What a route needs of the client that calls it. */
export interface ClientAccess {
  /** Of the resource; without one, a scope of admin keys. */
  readonly scope: string
  /** The identifier of the resource that the token must be for; without one it is for the service itself (`JWT_AUDIENCE`). */
  readonly resource?: string
}

/** The client of a request. */
export interface PresentedClient {
  readonly id: string
  /** Those of the token that the client still has. */
  readonly scopes: readonly string[]
  readonly claims: ClientTokenClaims
}

export interface ClientAuthenticatorDeps {
  readonly tokens: Pick<AccessTokens, 'inspect' | 'isAccepted'>
  readonly clients: ClientStore
  readonly openCache: OpenCache
  readonly clock: () => number
}

/** Clients with known tokens, and known tokens of one. */
const MAX_CLIENTS = 10_000
const MAX_TOKENS = 1_000

export class ClientAuthenticator {
  readonly #deps: ClientAuthenticatorDeps
  /** By client, what the store has said of each token. */
  readonly #known: IdCache<Map<string, FoundClient>>

  constructor(deps: ClientAuthenticatorDeps) {
    this.#deps = deps
    this.#known = deps.openCache({ load: () => new Map<string, FoundClient>(), max: MAX_CLIENTS })
  }

  /** @returns `null` for a token that is not valid, and for one of a user. @throws {ServiceError} `storeUnavailable` */
  async authenticate(token: string): Promise<PresentedClient | null> {
    const claims = this.#deps.tokens.inspect(token)
    return claims === null || claims.grantId !== null ? null : this.#find(claims)
  }

  /** Asks again for a client that was authenticated before. */
  confirm({ claims }: PresentedClient): Promise<PresentedClient | null> {
    return this.#find(claims)
  }

  /** Whether the token is for what a route needs. */
  isFor({ claims }: PresentedClient, { resource }: ClientAccess): boolean {
    return resource === undefined
      ? this.#deps.tokens.isAccepted(claims.audience)
      : claims.audience === resource
  }

  async #find(claims: ClientTokenClaims): Promise<PresentedClient | null> {
    const { tokens, clients, clock } = this.#deps
    const { clientId: id, tokenId, audience, scopes } = claims
    if (clock() >= claims.expiresAt) return null
    const known = await this.#known.get(id)
    const found = known.get(tokenId) ?? (await clients.find(id, tokenId))
    if (found === undefined) return null
    if (known.size >= MAX_TOKENS) known.clear()
    known.set(tokenId, found)
    const held = tokens.isAccepted(audience) ? found.adminScopes : found.scopes
    return { id, scopes: scopes.filter(scope => held.includes(scope)), claims }
  }
}
