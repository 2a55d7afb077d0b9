/**
 * Verifies admin keys: root keys of the configuration, which have every scope, and keys of the store (docs/design.md, "Machine callers"). One
 * of the store is looked up once; afterwards a request costs its digest and one lookup in memory.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { MaybePromise } from '#base/maybe-promise'
import type { InvalidationListener } from '#storage/invalidation'
import type { AdminKeyStore } from '../store/store.ts'
import { type AdminKey, MAX_ADMIN_KEYS, type PresentedAdminKey } from './admin-key.ts'
import { CacheValidity } from './cache-validity.ts'
import { InFlightLookups, Lookup } from './in-flight-lookups.ts'
import type { CachedAdminKeyRequests, LastRequests } from './last-requests.ts'
import { ADMIN_KEY_PREFIX, isOpaqueKey, keyDigest } from './opaque-key.ts'

const ROOT_ID_LENGTH = 8

export interface AdminAuthenticatorDeps {
  /** `ADMIN_KEY` and `ADMIN_KEY_PREVIOUS`, if they are set. */
  readonly rootKeys: readonly string[]
  readonly adminKeys: Pick<AdminKeyStore, 'find'>
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
  readonly key: PresentedAdminKey
}

const rootKeyOf = (key: string): RootKey => {
  const digest = keyDigest(key)
  return {
    digest: Buffer.from(digest),
    key: { id: digest.slice(0, ROOT_ID_LENGTH), name: null, scopes: null, expiresAt: null },
  }
}

/** Revoked keys are evicted before the revocation is acknowledged. The cache is bypassed while invalidations are late. */
export class AdminAuthenticator implements InvalidationListener {
  readonly #deps: AdminAuthenticatorDeps
  readonly #rootKeys: readonly RootKey[]
  /** By digest, so that no key stays in memory. */
  readonly #cache = new Map<string, CachedAdminKey>()
  readonly #digests = new Map<string, string>()
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
    const cached = this.#validity.isReliable ? this.#cache.get(digest) : undefined
    if (cached !== undefined) return this.#use(cached)
    if (!isOpaqueKey(ADMIN_KEY_PREFIX, presented)) return null
    const lookup = new Lookup(onStart => this.#deps.adminKeys.find(digest, onStart))
    const onResult = (found: AdminKey | undefined) => this.#useFound(digest, found)
    const ownerOf = (found: AdminKey | undefined) => found?.id
    const found = lookup.run()
    return found instanceof Promise
      ? this.#inFlightLookups.awaitUnchanged({ subject: digest, lookup, firstRun: found, onResult, ownerOf })
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
    if (key.isAdministrator) return this.#lent.values().some(lent => lent.key === key && lent.isValid())
    this.#deps.deliverInvalidations()
    const digest = this.#validity.isReliable ? this.#digests.get(key.id) : undefined
    if (digest === undefined || this.#cache.get(digest)?.key !== key) return false
    return key.expiresAt === null || this.#deps.clock() < key.expiresAt
  }

  /** Whether it is a root key, or a cached one. Without a query, for log levels. */
  recognizes(presented: string): boolean {
    const digest = keyDigest(presented)
    return this.#rootKey(digest) !== null || this.#cache.has(digest)
  }

  invalidate(id: string): void {
    this.#inFlightLookups.invalidate(id)
    const digest = this.#digests.get(id)
    if (digest !== undefined) this.#drop(digest, id)
  }

  invalidateAll(): void {
    this.#inFlightLookups.invalidateAll()
    this.#cache.clear()
    this.#digests.clear()
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
      const cached = this.#cache.get(digest)
      if (cached !== undefined) this.#drop(digest, cached.key.id)
      return null
    }
    const { id, name, scopes, expiresAt, lastUsedAt } = found
    const lastRequestAt = this.#deps.lastRequests.latestOf(id, lastUsedAt ?? 0)
    const key = { id, name, scopes, expiresAt }
    const cached = { key, credentialId: id, lastRequestAt, storedRequestAt: lastRequestAt }
    if (this.#validity.isReliable) this.#add(digest, cached)
    return this.#use(cached)
  }

  #use(cached: CachedAdminKey): PresentedAdminKey | null {
    const { key } = cached
    const now = this.#deps.clock()
    if (key.expiresAt !== null && now >= key.expiresAt) return null
    this.#deps.lastRequests.recordAdminKey(cached, now)
    return key
  }

  /** Bounded like the store. */
  #add(digest: string, cached: CachedAdminKey): void {
    if (this.#cache.size >= MAX_ADMIN_KEYS)
      for (const [oldest, { key }] of this.#cache.entries().take(1)) this.#drop(oldest, key.id)
    this.#cache.set(digest, cached)
    this.#digests.set(cached.key.id, digest)
  }

  #drop(digest: string, id: string): void {
    this.#cache.delete(digest)
    this.#digests.delete(id)
  }
}
