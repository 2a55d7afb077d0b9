/**
 * Tokens of clients of the authorization server, as authentication knows them: a token of a grant stands for its user, one of the client's
 * own for the client. The feature that has their rows declares how they are found (`AccountFeature.clientTokens`).
 */
import type { User } from '../users/user.ts'

/** SQL that finds what a token stands for: `$1` is the id of the grant or client, `$2` that of the token, which must not be revoked. */
export interface ClientTokenQueries {
  /** Selects the columns of {@link GrantRow}, of a grant whose client and session still exist. */
  readonly grant: string
  /** Selects the columns of {@link ClientRow}. */
  readonly client: string
}

/** Times are milliseconds since the epoch. */
export interface GrantRow {
  readonly user_key: number
  readonly grant_client: string
  /** JSON. */
  readonly grant_scopes: string
  readonly grant_expires_at: number
  /** Of the session that the grant ends with; `null`: it ends with none. */
  readonly grant_session_expires_at: number | null
  readonly grant_session_used_at: number | null
}

export interface ClientRow {
  /** JSON: the scopes of admin keys that the client may have. */
  readonly admin_scopes: string
  /** JSON with the `name` of the client, and the `scopes` that it may have besides. */
  readonly metadata: string
}

/** Times are milliseconds since the epoch. */
export interface Grant {
  readonly clientId: string
  readonly scopes: readonly string[]
  readonly expiresAt: number
  /** The session that the grant ends with. */
  readonly session: { readonly expiresAt: number; readonly lastRequestAt: number } | null
}

export interface FoundGrant {
  readonly grant: Grant
  readonly user: User
  /** The number that the store assigned to the user and never reuses. */
  readonly userKey: number
}

export interface FoundClient {
  readonly name: string
  readonly adminScopes: readonly string[]
  /** Those of resources among them. */
  readonly scopes: readonly string[]
}

export const toGrant = (row: GrantRow): Grant => ({
  clientId: row.grant_client,
  scopes: JSON.parse(row.grant_scopes) as string[],
  expiresAt: row.grant_expires_at,
  session:
    row.grant_session_expires_at === null
      ? null
      : { expiresAt: row.grant_session_expires_at, lastRequestAt: row.grant_session_used_at ?? 0 },
})

export const toClient = ({ admin_scopes, metadata }: ClientRow): FoundClient => ({
  name: (JSON.parse(metadata) as { readonly name: string }).name,
  adminScopes: JSON.parse(admin_scopes) as string[],
  scopes: (JSON.parse(metadata) as { readonly scopes: string[] }).scopes,
})

/** A client with cached tokens. */
export interface CachedClient {
  readonly id: string
  /** False once the client has changed: the store must be queried. */
  current: boolean
}

/** Clients whose tokens are cached at the same time. Beyond it all tokens are looked up again. */
const MAX_CLIENTS = 10_000

/** The clients of cached tokens, one record each: what deletes a client with a million tokens marks one record. */
export class ClientCache {
  readonly #current = new Map<string, CachedClient>()

  get(id: string): CachedClient | undefined {
    return this.#current.get(id)
  }

  recordOf(id: string): CachedClient {
    const found = this.#current.get(id)
    if (found !== undefined) return found
    if (this.#current.size >= MAX_CLIENTS) this.evictAll()
    const client = { id, current: true }
    this.#current.set(id, client)
    return client
  }

  evict(id: string): void {
    const client = this.#current.get(id)
    if (client === undefined) return
    client.current = false
    this.#current.delete(id)
  }

  evictAll(): void {
    for (const client of this.#current.values()) client.current = false
    this.#current.clear()
  }
}
