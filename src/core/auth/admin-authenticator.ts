/**
 * Verifies admin keys: root keys of the configuration, which have every scope, and keys of the store (docs/design.md, "Machine callers"). One
 * of the store is looked up once; afterwards a request costs its digest and one lookup in memory. A client's own token is accepted as a key
 * with the admin scopes that the token and the client have.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { MaybePromise } from '#base/maybe-promise'
import type { InvalidationListener } from '#storage/invalidation'
import type { AdminKeyStore, ClientStore } from '../store/store.ts'
import type { AccessTokens, ClientTokenClaims } from './access-tokens.ts'
import { type AdminKey, MAX_ADMIN_KEYS, type PresentedAdminKey } from './admin-key.ts'
import { CacheValidity } from './cache-validity.ts'
import type { FoundClient } from './client-tokens.ts'
import { InFlightLookups, Lookup } from './in-flight-lookups.ts'
import type { CachedAdminKeyRequests, LastRequests } from './last-requests.ts'
import { ADMIN_KEY_PREFIX, isOpaqueKey, keyDigest } from './opaque-key.ts'

const ROOT_ID_LENGTH = 8

/** Tokens of clients in memory. */
const MAX_TOKENS = 10_000

export interface AdminAuthenticatorDeps {
  /** `ADMIN_KEY` and `ADMIN_KEY_PREVIOUS`, if they are set. */
  readonly rootKeys: readonly string[]
  readonly adminKeys: Pick<AdminKeyStore, 'find'>
  readonly tokens: Pick<AccessTokens, 'verify'>
  readonly clients: ClientStore
  readonly lastRequests: Pick<LastRequests, 'recordAdminKey' | 'latestOf'>
  /** Evicts what a committed change has made stale (`Engine.deliverInvalidations`). Called before the cache is used. */
  readonly deliverInvalidations: () => void
  readonly clock: () => number
}

interface RootKey {
  readonly digest: Buffer
  readonly key: PresentedAdminKey
}

/** A key of the service itself. */
interface LentKey {
  readonly key: PresentedAdminKey
  readonly isValid: () => boolean
}

interface CachedAdminKey extends CachedAdminKeyRequests {
  readonly digest: string
  readonly key: PresentedAdminKey
}

/** Keys or tokens by digest, so that none stays in memory. The oldest makes room for another one. */
class BoundedKeys extends Map<string, CachedAdminKey> {
  readonly capacity: number

  constructor(capacity: number) {
    super()
    this.capacity = capacity
  }
}

const rootKeyOf = (key: string): RootKey => {
  const digest = keyDigest(key)
  return {
    digest: Buffer.from(digest),
    key: { id: digest.slice(0, ROOT_ID_LENGTH), name: null, scopes: null, expiresAt: null },
  }
}

/** Revoked keys and clients are evicted before the revocation is acknowledged. The cache is bypassed while invalidations are late. */
export class AdminAuthenticator implements InvalidationListener {
  readonly #deps: AdminAuthenticatorDeps
  readonly #rootKeys: readonly RootKey[]
  /** Bounded like the store. */
  readonly #keys = new BoundedKeys(MAX_ADMIN_KEYS)
  /** Apart from the keys, which they would evict. */
  readonly #tokens = new BoundedKeys(MAX_TOKENS)
  /** By the id of a key, or of a client, which has many tokens. */
  readonly #byId = new Map<string, Set<CachedAdminKey>>()
  readonly #current = new Set<PresentedAdminKey>()
  /** By digest. */
  readonly #lent = new Map<string, LentKey>()
  readonly #inFlightLookups = new InFlightLookups()
  readonly #validity = new CacheValidity()

  constructor(deps: AdminAuthenticatorDeps) {
    this.#deps = deps
    this.#rootKeys = deps.rootKeys.map(rootKeyOf)
  }

  /** `null` for an invalid key. Records the request. A promise only if the store has to be queried across a network. */
  authenticate(presented: string): MaybePromise<PresentedAdminKey | null> {
    const digest = keyDigest(presented)
    const rootKey = this.#rootKey(digest)
    if (rootKey !== null) return rootKey
    const lent = this.#lent.get(digest)
    if (lent !== undefined) return lent.isValid() ? lent.key : null
    this.#deps.deliverInvalidations()
    const cached = this.#validity.isReliable ? this.#cached(digest) : undefined
    if (cached !== undefined) return this.#use(cached)
    return isOpaqueKey(ADMIN_KEY_PREFIX, presented)
      ? this.#resolveKey(digest)
      : this.#resolveToken(digest, presented)
  }

  #resolveKey(digest: string): MaybePromise<PresentedAdminKey | null> {
    const lookup = new Lookup(onStart => this.#deps.adminKeys.find(digest, onStart))
    const onResult = (found: AdminKey | undefined) => this.#useFound(digest, found)
    const ownerOf = (found: AdminKey | undefined) => found?.id
    const found = lookup.run()
    return found instanceof Promise
      ? this.#inFlightLookups.awaitUnchanged({ subject: digest, lookup, firstRun: found, onResult, ownerOf })
      : onResult(found)
  }

  #resolveToken(digest: string, token: string): MaybePromise<PresentedAdminKey | null> {
    const claims = this.#deps.tokens.verify(token)
    if (claims === null || !('clientId' in claims) || claims.grantId !== null) return null
    // The header has no place for a proof.
    if (claims.jkt !== null) return null
    const { clientId: subject, tokenId } = claims
    const lookup = new Lookup(onStart => this.#deps.clients.find(subject, tokenId, onStart))
    const onResult = (found: FoundClient | undefined) => this.#useClient(digest, claims, found)
    const found = lookup.run()
    return found instanceof Promise
      ? this.#inFlightLookups.awaitUnchanged({ subject, lookup, firstRun: found, onResult })
      : onResult(found)
  }

  /**
   * Makes a key for calls of the API in one request of the console (§5.2). It is in this process alone, and nobody outside gets it.
   * @param isValid asked at each use of the key.
   * @returns the key, and what ends it.
   */
  lend(key: PresentedAdminKey, isValid: () => boolean): { readonly text: string; readonly end: () => void } {
    const text = randomBytes(32).toString('base64url')
    const digest = keyDigest(text)
    this.#lent.set(digest, { key, isValid })
    return { text, end: () => this.#lent.delete(digest) }
  }

  /** Whether a key that this authenticator has returned is still valid; without the digest of the presented key. */
  isCurrent(key: PresentedAdminKey): boolean {
    if (this.#rootKeys.some(rootKey => rootKey.key === key)) return true
    if (key.administrator !== undefined)
      return this.#lent.values().some(lent => lent.key === key && lent.isValid())
    this.#deps.deliverInvalidations()
    if (!this.#validity.isReliable || !this.#current.has(key)) return false
    return key.expiresAt === null || this.#deps.clock() < key.expiresAt
  }

  /** Whether it is a root key, or a cached one. Without a query, for log levels. */
  recognizes(presented: string): boolean {
    const digest = keyDigest(presented)
    return this.#rootKey(digest) !== null || this.#cached(digest) !== undefined
  }

  invalidate(id: string): void {
    this.#inFlightLookups.invalidate(id)
    for (const cached of this.#byId.get(id) ?? []) this.#drop(cached)
  }

  invalidateAll(): void {
    this.#inFlightLookups.invalidateAll()
    this.#keys.clear()
    this.#tokens.clear()
    this.#byId.clear()
    this.#current.clear()
  }

  setFeedConnected(isConnected: boolean): void {
    if (this.#validity.setFeedConnected(isConnected)) this.invalidateAll()
  }

  setFeedLate(isLate: boolean): void {
    this.#validity.setFeedLate(isLate)
  }

  closed(): void {
    this.setFeedConnected(false)
  }

  /** Every key is compared, so that response times reveal nothing about one. */
  #rootKey(digest: string): PresentedAdminKey | null {
    const presented = Buffer.from(digest)
    let accepted: PresentedAdminKey | null = null
    for (const rootKey of this.#rootKeys)
      if (timingSafeEqual(presented, rootKey.digest)) accepted = rootKey.key
    return accepted
  }

  #useFound(digest: string, found: AdminKey | undefined): PresentedAdminKey | null {
    if (found === undefined) {
      // As in Authenticator: another instance may have revoked it, and an older result must not make it valid again.
      this.#inFlightLookups.invalidateKey(digest)
      const cached = this.#cached(digest)
      if (cached !== undefined) this.#drop(cached)
      return null
    }
    const { id, name, scopes, expiresAt, lastUsedAt } = found
    const lastRequestAt = this.#deps.lastRequests.latestOf(id, lastUsedAt ?? 0)
    const key = { id, name, scopes, expiresAt }
    return this.#use(
      this.#added(this.#keys, {
        digest,
        key,
        credentialId: id,
        lastRequestAt,
        storedRequestAt: lastRequestAt,
      }),
    )
  }

  #useClient(
    digest: string,
    { clientId: id, scopes, expiresAt }: ClientTokenClaims,
    found: FoundClient | undefined,
  ): PresentedAdminKey | null {
    if (found === undefined) {
      this.invalidate(id)
      return null
    }
    const key = {
      id,
      name: found.name,
      scopes: scopes.filter(scope => found.adminScopes.includes(scope)),
      expiresAt,
    }
    // The requests of clients are not written.
    const never = Number.POSITIVE_INFINITY
    return this.#use(
      this.#added(this.#tokens, {
        digest,
        key,
        credentialId: id,
        lastRequestAt: never,
        storedRequestAt: never,
      }),
    )
  }

  #use(cached: CachedAdminKey): PresentedAdminKey | null {
    const { key } = cached
    const now = this.#deps.clock()
    if (key.expiresAt !== null && now >= key.expiresAt) return null
    this.#deps.lastRequests.recordAdminKey(cached, now)
    return key
  }

  #cached(digest: string): CachedAdminKey | undefined {
    return this.#keys.get(digest) ?? this.#tokens.get(digest)
  }

  #added(cache: BoundedKeys, cached: CachedAdminKey): CachedAdminKey {
    if (!this.#validity.isReliable) return cached
    const { digest, key } = cached
    const former = cache.get(digest)
    if (former !== undefined) this.#drop(former)
    if (cache.size >= cache.capacity) for (const oldest of cache.values().take(1)) this.#drop(oldest)
    cache.set(digest, cached)
    this.#byId.set(key.id, (this.#byId.get(key.id) ?? new Set()).add(cached))
    this.#current.add(key)
    return cached
  }

  #drop(cached: CachedAdminKey): void {
    const { digest, key } = cached
    this.#keys.delete(digest)
    this.#tokens.delete(digest)
    this.#current.delete(key)
    const others = this.#byId.get(key.id)
    others?.delete(cached)
    if (others?.size === 0) this.#byId.delete(key.id)
  }
}
