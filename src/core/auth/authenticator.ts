/**
 * Authenticates requests (§5.1.2). A token is verified and its session looked up once; an API key is looked up by its digest
 * (docs/design.md, "Machine callers"). A token that names a client stands for a grant (`client-tokens.ts`). Afterwards a request costs one
 * lookup in memory.
 *
 * Revocation: every cached token refers to its user's record, and a change of a user, a session, an API key or a grant marks that record as no
 * longer current; a token of a grant refers to the client's record too. This happens before the change is acknowledged, in the process that
 * makes it and in all others (`process-leases.ts`).
 */
import type { MaybePromise } from '#base/maybe-promise'
import type { InvalidationListener } from '#storage/invalidation'
import type { ApiKeyStore, FoundSession, GrantStore, SessionStore } from '../store/store.ts'
import { accountTextOf } from '../users/serializers.ts'
import { type AccessTokens, BOUND_PREFIX, type ClientTokenClaims, isTokenOf } from './access-tokens.ts'
import type { FoundApiKey } from './api-key.ts'
import { CacheValidity } from './cache-validity.ts'
import { type CachedClient, ClientCache, type FoundGrant } from './client-tokens.ts'
import { InFlightLookups, Lookup } from './in-flight-lookups.ts'
import type { LastRequests } from './last-requests.ts'
import { OffHeapTokenCache } from './off-heap-token-cache.ts'
import { API_KEY_PREFIX, isOpaqueKey, keyDigest } from './opaque-key.ts'
import type { Principal } from './principal.ts'
import { RejectedTokens } from './rejected-tokens.ts'
import { NO_AMR, type Session, type SessionLimits } from './session.ts'
import { heapTokenCapacity, TokenCache } from './token-cache.ts'
import { copyString, type TokenRecord } from './token-record.ts'
import type { UserCache } from './user-cache.ts'

export interface AuthenticatorDeps {
  readonly tokens: AccessTokens
  readonly sessions: Pick<SessionStore, 'find'>
  readonly apiKeys: Pick<ApiKeyStore, 'find'>
  readonly grants: GrantStore
  readonly userCache: UserCache
  readonly lastRequests: LastRequests
  readonly limits: SessionLimits
  /** Evicts what a committed change has made stale (`Engine.deliverInvalidations`). Called before the cache is used. */
  readonly deliverInvalidations: () => void
  readonly clock: () => number
  /** How many tokens to cache. */
  readonly capacity: number
  /** How many of them on the heap at most; by default {@link HOT_TOKENS}, or as many as fit into the heap. */
  readonly hotCapacity?: number
}

/** Tokens on the heap at most: more prolong garbage collection. The others are restored from records, which takes longer. */
const HOT_TOKENS = 32_768

/** For metrics: counts since the start. */
export interface TokenCacheStatistics {
  readonly entries: number
  /** How many fit, if their users have no metadata. */
  readonly capacity: number
  /** Tokens that were found. */
  readonly hits: number
  /** Tokens that were verified or looked up in the store, valid or not. */
  readonly misses: number
  readonly evictions: number
}

/** What identifies a user: a session, an API key, or a grant. */
type Credential = Pick<
  Principal,
  | 'credentialId'
  | 'client'
  | 'scopes'
  | 'amr'
  | 'impersonatedBy'
  | 'authenticatedAt'
  | 'expiresAt'
  | 'lastRequestAt'
>

/** @param expiresAt of the token. */
const sessionCredential = (session: Session, expiresAt: number): Credential => ({
  credentialId: session.id,
  client: null,
  scopes: null,
  amr: session.amr,
  impersonatedBy: session.impersonatedBy,
  authenticatedAt: session.impersonatedBy === null ? session.authenticatedAt : 0,
  expiresAt: Math.min(session.expiresAt, expiresAt),
  lastRequestAt: session.lastRequestAt,
})

const apiKeyCredential = ({ apiKey }: FoundApiKey): Credential => ({
  credentialId: apiKey.id,
  client: null,
  scopes: apiKey.scopes,
  amr: NO_AMR,
  impersonatedBy: null,
  authenticatedAt: 0,
  expiresAt: apiKey.expiresAt ?? Number.POSITIVE_INFINITY,
  lastRequestAt: apiKey.lastUsedAt ?? 0,
})

/**
 * The scopes are those of the token that the grant still has.
 * @param idle of the session that the grant ends with.
 */
const grantCredential = (
  claims: ClientTokenClaims,
  { grant }: FoundGrant,
  client: CachedClient,
  idle: number,
): Credential => {
  const { session } = grant
  const sessionEnd =
    session === null ? Number.POSITIVE_INFINITY : Math.min(session.expiresAt, session.lastRequestAt + idle)
  return {
    credentialId: claims.grantId ?? '',
    client,
    scopes: claims.scopes.filter(scope => grant.scopes.includes(scope)),
    amr: NO_AMR,
    impersonatedBy: null,
    authenticatedAt: 0,
    expiresAt: Math.min(claims.expiresAt, grant.expiresAt, sessionEnd),
    // Its requests are not written: the grant was used when its token was issued.
    lastRequestAt: Number.POSITIVE_INFINITY,
  }
}

export class Authenticator implements InvalidationListener {
  readonly #deps: AuthenticatorDeps
  /** The first level: the tokens that are used most often. */
  readonly #cache: TokenCache
  /** The second level: tokens that the first had no place for, also those of them that have moved there since. */
  readonly #offHeapCache: OffHeapTokenCache
  readonly #rejectedTokens: RejectedTokens
  readonly #clients = new ClientCache()
  readonly #inFlightLookups = new InFlightLookups()
  readonly #validity = new CacheValidity()
  readonly #capacity: number
  #hits = 0
  #misses = 0
  /** Tokens that the first level has evicted, and that the second did not take. */
  #evictions = 0

  constructor(deps: AuthenticatorDeps) {
    this.#deps = deps
    const { capacity, userCache, hotCapacity = Math.min(HOT_TOKENS, heapTokenCapacity()) } = deps
    const hot = Math.min(capacity, hotCapacity)
    this.#cache = new TokenCache(hot, userCache, principal => {
      const isKept =
        principal.cachedUser.current && this.#offHeapCache.add(principal, this.#requests) !== null
      if (!isKept) this.#evictions += 1
    })
    this.#offHeapCache = new OffHeapTokenCache(capacity > hot ? capacity : 0)
    this.#capacity = capacity
    this.#rejectedTokens = new RejectedTokens(Math.min(capacity, heapTokenCapacity()))
  }

  get cacheStatistics(): TokenCacheStatistics {
    return {
      entries: this.#entries,
      capacity: this.#capacity,
      hits: this.#hits,
      misses: this.#misses,
      evictions: this.#evictions + this.#offHeapCache.evictions,
    }
  }

  /**
   * The principal of a token, with its last request recorded; `null` if the token is invalid. A promise only if the store has to
   * be queried across a network.
   * @throws {ServiceError} `storeUnavailable`
   */
  authenticate(token: string): MaybePromise<Principal | null> {
    const now = this.#deps.clock()
    const principal = this.#cached(token, now)
    if (principal === null) {
      const restored = this.#restored(token, now, true)
      if (restored === null) {
        this.#misses += 1
        return this.#resolve(token, true)
      }
      this.#hits += 1
      return restored
    }
    this.#hits += 1
    principal.used = true
    this.#deps.lastRequests.record(principal, now)
    return principal
  }

  /**
   * The principal of a token that its user does not present here: no last request is recorded, so the session's idle time goes on.
   * `null` if the token is invalid. A promise only if the store has to be queried across a network.
   * @throws {ServiceError} `storeUnavailable`
   */
  introspect(token: string): MaybePromise<Principal | null> {
    const now = this.#deps.clock()
    const principal = this.#cached(token, now)
    if (principal === null) return this.#restored(token, now, false) ?? this.#resolve(token, false)
    principal.used = true
    return principal
  }

  /** Whether tokens can be cached now: notifications of changes are received in time. */
  get isCaching(): boolean {
    return this.#validity.isReliable
  }

  /**
   * Must be called for every change of a user, or of a session, an API key or a grant of theirs, and of a client, before the change is
   * acknowledged.
   */
  invalidate(id: string): void {
    this.#validity.recordInvalidation()
    this.#inFlightLookups.invalidate(id)
    this.#deps.userCache.evict(id)
    this.#clients.evict(id)
    this.#offHeapCache.invalidate(id)
  }

  /** Evicts all tokens, after changes by another process whose users are unknown. */
  invalidateAll(): void {
    this.#validity.recordInvalidation()
    this.#inFlightLookups.invalidateAll()
    this.#deps.userCache.evictAll()
    this.#clients.evictAll()
    this.#cache.clear()
    this.#offHeapCache.clear()
  }

  /** While changes by other processes are not notified, every request queries the store: revocation has priority over speed. */
  setFeedConnected(isConnected: boolean): void {
    if (this.#validity.setFeedConnected(isConnected)) this.invalidateAll()
  }

  /** The cache is bypassed but kept, as notifications still update it: filling it again costs a busy store seconds. */
  setFeedLate(isLate: boolean): void {
    this.#validity.setFeedLate(isLate)
  }

  closed(): void {
    this.setFeedConnected(false)
  }

  /** Whether a principal may be used without another query: nothing has changed since, or its query is recent. */
  isCurrent({ cachedUser, client, queriedAt }: Principal): boolean {
    this.#deps.deliverInvalidations()
    const isUnchanged = cachedUser.current && (client === null || client.current)
    return (isUnchanged && this.#validity.isReliable) || this.#validity.isRecent(queriedAt)
  }

  /** Cached tokens. Those that the first level evicts can exceed the capacity by its size. */
  get #entries(): number {
    return Math.min(this.#cache.size + this.#offHeapCache.size, this.#capacity)
  }

  /** The number of requests so far. */
  get #requests(): number {
    return this.#hits + this.#misses
  }

  /** The principal of a token in the first level, if it is valid now. */
  #cached(token: string, now: number): Principal | null {
    this.#deps.deliverInvalidations()
    const principal = this.#validity.isReliable ? this.#cache.get(token) : undefined
    if (principal === undefined) return null
    if (principal.cachedUser.current && this.#alive(principal, now)) return principal
    // Idle on this instance: another one may have had requests.
    this.#cache.drop(principal)
    return null
  }

  /** The principal of a token in the second level, if it is valid now. @param isRequest whether to record the last request. */
  #restored(token: string, now: number, isRequest: boolean): Principal | null {
    const record = this.#validity.isReliable ? this.#offHeapCache.get(token, now) : undefined
    if (record === undefined) return null
    if (this.#deps.userCache.isOutdated(record.userId, record.userVersion)) {
      this.#offHeapCache.remove(record)
      return null
    }
    const { clientId } = record
    const client = clientId === null ? null : this.#clients.get(clientId)
    if (client === undefined) {
      // The client has changed.
      this.#offHeapCache.remove(record)
      return null
    }
    const isHot = this.#isHot(record)
    const principal = isHot ? this.#promoted(record, client) : this.#detached(record, client)
    if (!this.#alive(principal, now)) {
      // As in the first level.
      this.#offHeapCache.remove(record)
      return null
    }
    if (isRequest) this.#recordRequest(record, principal, now)
    if (isHot) {
      record.isHot = true
      this.#cache.add(principal)
    }
    return principal
  }

  /**
   * Whether the first level should take a token: it would still contain it if it were as large as the number of requests since the
   * last use. So a rotation over more tokens than it can hold does not evict those that are used more often.
   */
  #isHot(record: TokenRecord): boolean {
    return this.#requests - record.usedAt <= this.#cache.capacity || this.#cache.hasRoom
  }

  #promoted(record: TokenRecord, client: CachedClient | null): Principal {
    const cachedUser = this.#deps.userCache.recordOf(record.user(), record.userKey)
    cachedUser.accountText ??= record.accountText
    return record.principal(cachedUser, client, Number.NEGATIVE_INFINITY)
  }

  /** A principal for one request: valid like the result of a query, or as long as another token keeps the user in the cache. */
  #detached(record: TokenRecord, client: CachedClient | null): Principal {
    const { userCache } = this.#deps
    const cached = userCache.get(record.userId)
    if (cached !== undefined) return record.principal(cached, client, Number.NEGATIVE_INFINITY)
    const cachedUser = userCache.uncachedRecordOf(record.user(), record.userKey)
    cachedUser.accountText = record.accountText
    return record.principal(cachedUser, client, performance.now())
  }

  /**
   * Adds a token to the second level, because the first is full. If every new token passed through the first, requests of many users
   * would evict the tokens that are used most often, and garbage collection would take a fifth of the CPU.
   * @returns the principal for this request; `null` if the second level does not keep it.
   */
  #addDetached(principal: Principal, now: number, isRequest: boolean): Principal | null {
    const { cachedUser } = principal
    // For the record and the response.
    cachedUser.accountText ??= accountTextOf(cachedUser.user)
    const record = this.#offHeapCache.add(principal, this.#requests)
    if (record === null) return null
    const isShared = this.#deps.userCache.get(cachedUser.user.id) === cachedUser
    if (!isShared) cachedUser.current = false
    const detached = isShared ? principal : { ...principal, queriedAt: performance.now() }
    if (isRequest) this.#recordRequest(record, detached, now)
    return detached
  }

  /** Notes a request with a token of the second level. */
  #recordRequest(record: TokenRecord, principal: Principal, now: number): void {
    const { lastRequests, userCache } = this.#deps
    if (principal.cachedUser.current) {
      lastRequests.record(principal, now)
    } else {
      lastRequests.recordDetached(principal, now)
      userCache.saveTimestamp(record.userId, principal.cachedUser.lastRequestAt)
    }
    record.setLastRequest(principal, this.#requests)
  }

  /** @param isRequest whether the user presents the token, so that the last request is recorded. */
  #resolve(token: string, isRequest: boolean): MaybePromise<Principal | null> {
    if (token.startsWith(API_KEY_PREFIX)) return this.#resolveApiKey(token, isRequest)
    if (this.#rejectedTokens.has(token)) return null
    const isBound = token.startsWith(BOUND_PREFIX)
    const claims = this.#deps.tokens.verify(isBound ? token.slice(BOUND_PREFIX.length) : token)
    if (claims === null || isBound !== ('jkt' in claims && claims.jkt !== null)) {
      this.#rejectedTokens.add(token)
      return null
    }
    if (this.#deps.clock() >= claims.expiresAt) return null
    if ('clientId' in claims) return this.#resolveGrant(token, claims, isRequest)
    const lookup = new Lookup(onStart => this.#deps.sessions.find(claims.sessionId, onStart))
    const onResult = (found: FoundSession | undefined): Principal | null => {
      if (found !== undefined && !found.user.disabled && isTokenOf(claims, found.session))
        return this.#createPrincipal(token, found, sessionCredential(found.session, claims.expiresAt), {
          queriedAt: lookup.queriedAt,
          isRequest,
        })
      // Another instance may have made a change that is not notified yet. An older result of a query in flight must not make
      // the token valid again.
      this.invalidate(claims.userId)
      return null
    }
    const found = lookup.run()
    return found instanceof Promise
      ? this.#inFlightLookups.awaitUnchanged({
          subject: claims.userId,
          lookup,
          firstRun: found,
          onResult,
          isOutdated: this.#isOutdated,
        })
      : onResult(found)
  }

  #resolveApiKey(token: string, isRequest: boolean): MaybePromise<Principal | null> {
    if (!isOpaqueKey(API_KEY_PREFIX, token)) return null
    const digest = keyDigest(token)
    const lookup = new Lookup(onStart => this.#deps.apiKeys.find(digest, onStart))
    const onResult = (found: FoundApiKey | undefined): Principal | null => {
      if (found === undefined) {
        // As for sessions.
        this.#inFlightLookups.invalidateKey(digest)
        const owner =
          this.#cache.get(token)?.cachedUser.user.id ??
          this.#offHeapCache.get(token, this.#deps.clock())?.userId
        if (owner !== undefined) this.invalidate(owner)
        return null
      }
      if (!found.user.disabled)
        return this.#createPrincipal(token, found, apiKeyCredential(found), {
          queriedAt: lookup.queriedAt,
          isRequest,
        })
      this.invalidate(found.user.id)
      return null
    }
    const ownerOf = (found: FoundApiKey | undefined) => found?.user.id
    const found = lookup.run()
    return found instanceof Promise
      ? this.#inFlightLookups.awaitUnchanged({
          subject: digest,
          lookup,
          firstRun: found,
          onResult,
          ownerOf,
          isOutdated: this.#isOutdated,
        })
      : onResult(found)
  }

  #resolveGrant(
    token: string,
    claims: ClientTokenClaims,
    isRequest: boolean,
  ): MaybePromise<Principal | null> {
    const { grantId, subject, clientId, tokenId } = claims
    // A token of the client's own has no user.
    if (grantId === null) return null
    const { grants, limits } = this.#deps
    const lookup = new Lookup(onStart => grants.find(grantId, tokenId, onStart))
    const onResult = (found: FoundGrant | undefined): Principal | null => {
      if (
        found !== undefined &&
        !found.user.disabled &&
        found.user.id === subject &&
        found.grant.clientId === clientId
      ) {
        const credential = grantCredential(claims, found, this.#clients.recordOf(clientId), limits.idle)
        return this.#createPrincipal(token, found, credential, { queriedAt: lookup.queriedAt, isRequest })
      }
      // As for sessions.
      this.invalidate(subject)
      return null
    }
    const found = lookup.run()
    return found instanceof Promise
      ? this.#inFlightLookups.awaitUnchanged({
          subject,
          lookup,
          firstRun: found,
          onResult,
          ownerOf: () => clientId,
          isOutdated: this.#isOutdated,
        })
      : onResult(found)
  }

  /** Whether a newer version of the user of a lookup's result was read lately. */
  readonly #isOutdated = (found: Pick<FoundSession, 'user'> | undefined): boolean =>
    found !== undefined && this.#deps.userCache.isOutdated(found.user.id, found.user.version)

  #createPrincipal(
    token: string,
    found: Pick<FoundSession, 'user' | 'userKey'>,
    credential: Credential,
    { queriedAt, isRequest }: { readonly queriedAt: number; readonly isRequest: boolean },
  ): Principal | null {
    const { userCache, lastRequests, clock } = this.#deps
    const now = clock()
    userCache.recordVersion(found.user)
    const principal = this.#newPrincipal(token, found, credential, queriedAt)
    if (!this.#alive(principal, now)) return null
    const isCacheable = this.#validity.isReliable
    if (isCacheable && !this.#cache.hasRoomFor(found.user)) {
      const detached = this.#addDetached(principal, now, isRequest)
      if (detached !== null) return detached
    }
    if (isCacheable) this.#cache.add(principal)
    if (!isRequest) return principal
    lastRequests.record(principal, now)
    if (!isCacheable)
      userCache.saveTimestamp(principal.cachedUser.user.id, principal.cachedUser.lastRequestAt)
    return principal
  }

  #newPrincipal(
    token: string,
    { user, userKey }: Pick<FoundSession, 'user' | 'userKey'>,
    credential: Credential,
    queriedAt: number,
  ): Principal {
    const { userCache, lastRequests } = this.#deps
    const lastRequestAt = lastRequests.latestOf(credential.credentialId, credential.lastRequestAt)
    const isCacheable = this.#validity.isReliable
    return {
      token: copyString(token),
      cachedUser: isCacheable ? userCache.recordOf(user, userKey) : userCache.uncachedRecordOf(user, userKey),
      credentialId: credential.credentialId,
      client: credential.client,
      scopes: credential.scopes,
      amr: credential.amr,
      impersonatedBy: credential.impersonatedBy,
      authenticatedAt: credential.authenticatedAt,
      expiresAt: credential.expiresAt,
      lastRequestAt,
      storedRequestAt: lastRequestAt,
      queriedAt: isCacheable ? Number.NEGATIVE_INFINITY : queriedAt,
      used: false,
    }
  }

  #alive({ scopes, client, expiresAt, lastRequestAt }: Principal, now: number): boolean {
    if (now >= expiresAt) return false
    return scopes === null ? now - lastRequestAt < this.#deps.limits.idle : client === null || client.current
  }
}
