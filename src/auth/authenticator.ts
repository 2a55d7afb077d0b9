/**
 * Authenticates requests (§5.1.2). A token is verified and its session looked up once. Afterwards a request costs one lookup
 * in memory (under 1 µs; verifying costs 6 and the session 11).
 *
 * Revocation: every cached token refers to its user's record, and a change of a user or a session marks that record as no longer
 * current. In the process that makes the change this happens before the change is acknowledged, so revocation is immediate there.
 * Other processes are notified: they follow within a second, typically within milliseconds.
 */
import type { MaybePromise } from '../maybe-promise.ts'
import { type AccessTokenClaims, type AccessTokens, isTokenOf } from './access-tokens.ts'
import { CacheValidity } from './cache-validity.ts'
import { copyString } from './copy-string.ts'
import { InFlightLookups, Lookup } from './in-flight-lookups.ts'
import type { InvalidationListener } from './invalidation.ts'
import type { LastRequests } from './last-requests.ts'
import type { Principal } from './principal.ts'
import { RejectedTokens } from './rejected-tokens.ts'
import type { SessionLimits } from './session.ts'
import type { FoundSession, SessionStore } from './session-store.ts'
import { TokenCache, tokenCapacity } from './token-cache.ts'
import type { UserCache } from './user-cache.ts'

export interface AuthenticatorDeps {
  readonly tokens: AccessTokens
  readonly sessions: Pick<SessionStore, 'find'>
  readonly userCache: UserCache
  readonly lastRequests: LastRequests
  readonly limits: SessionLimits
  readonly clock: () => number
  /** How many tokens to cache; by default as many as fit into the heap. */
  readonly capacity?: number
}

export class Authenticator implements InvalidationListener {
  readonly #deps: AuthenticatorDeps
  readonly #cache: TokenCache
  readonly #rejectedTokens: RejectedTokens
  readonly #inFlightLookups = new InFlightLookups()
  readonly #validity = new CacheValidity()

  constructor(deps: AuthenticatorDeps) {
    this.#deps = deps
    const capacity = deps.capacity ?? tokenCapacity()
    this.#cache = new TokenCache(capacity, deps.userCache)
    this.#rejectedTokens = new RejectedTokens(capacity)
  }

  /**
   * The principal of a token, with its last request noted; `null` if the token is invalid. A promise only if the store has to
   * be queried across a network.
   * @throws {ServiceError} `storeUnavailable`
   */
  authenticate(token: string): MaybePromise<Principal | null> {
    const principal = this.#validity.isReliable ? this.#cache.get(token) : undefined
    if (principal === undefined) return this.#resolve(token)
    if (!principal.cachedUser.current) {
      this.#cache.drop(principal)
      return this.#resolve(token)
    }
    const now = this.#deps.clock()
    if (!this.#alive(principal, now)) {
      // Idle on this instance: another one may have had requests.
      this.#cache.drop(principal)
      return this.#resolve(token)
    }
    principal.used = true
    this.#deps.lastRequests.note(principal, now)
    return principal
  }

  /** Must be called for every change of a user or of one of their sessions, before the change is acknowledged. */
  invalidateUser(userId: string): void {
    this.#validity.noteInvalidation()
    this.#inFlightLookups.invalidateUser(userId)
    this.#deps.userCache.evict(userId)
  }

  /** For changes by another process whose users are unknown. */
  invalidateAll(): void {
    this.#validity.noteInvalidation()
    this.#inFlightLookups.invalidateAll()
    this.#deps.userCache.evictAll()
    this.#cache.clear()
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
  isCurrent({ cachedUser, queriedAt }: Principal): boolean {
    return (cachedUser.current && this.#validity.isReliable) || this.#validity.isRecent(queriedAt)
  }

  #resolve(token: string): MaybePromise<Principal | null> {
    if (this.#rejectedTokens.has(token)) return null
    const claims = this.#deps.tokens.verify(token)
    if (claims === null) {
      this.#rejectedTokens.add(token)
      return null
    }
    if (this.#deps.clock() >= claims.expiresAt) return null
    const lookup = new Lookup(onStart => this.#deps.sessions.find(claims.sessionId, onStart))
    const createPrincipal = (found: FoundSession | undefined) =>
      this.#createPrincipal(token, claims, found, lookup.queriedAt)
    const found = lookup.run()
    return found instanceof Promise
      ? this.#inFlightLookups.awaitUnchanged(claims.userId, lookup, found, createPrincipal)
      : createPrincipal(found)
  }

  #createPrincipal(
    token: string,
    claims: AccessTokenClaims,
    found: FoundSession | undefined,
    queriedAt: number,
  ): Principal | null {
    if (found === undefined || found.user.disabled || !isTokenOf(claims, found.session)) {
      // Another instance may have made a change that is not notified yet. An older result of a query in flight must not make
      // the token valid again.
      this.invalidateUser(claims.userId)
      return null
    }
    const { session, user, userKey } = found
    const { userCache, lastRequests, clock } = this.#deps
    const now = clock()
    const lastRequestAt = lastRequests.latestOfSession(session)
    const isCacheable = this.#validity.isReliable
    const principal: Principal = {
      token: copyString(token),
      cachedUser: isCacheable ? userCache.recordOf(user, userKey) : userCache.uncachedRecordOf(user, userKey),
      sessionId: session.id,
      impersonatedBy: session.impersonatedBy,
      expiresAt: Math.min(session.expiresAt, claims.expiresAt),
      lastRequestAt,
      storedRequestAt: lastRequestAt,
      queriedAt: isCacheable ? Number.NEGATIVE_INFINITY : queriedAt,
      used: false,
    }
    if (!this.#alive(principal, now)) return null
    if (isCacheable) this.#cache.add(principal)
    lastRequests.note(principal, now)
    if (!isCacheable) userCache.saveTimestamp(principal.cachedUser)
    return principal
  }

  #alive(principal: Principal, now: number): boolean {
    return now < principal.expiresAt && now - principal.lastRequestAt < this.#deps.limits.idle
  }
}
