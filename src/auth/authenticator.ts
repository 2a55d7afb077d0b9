/**
 * Who is asking (§5.1.2). A token is verified and its session looked up once; from then on a request costs one lookup in
 * memory (under 1 µs, where verifying costs 6 and the session 11).
 *
 * Revocation: every change of a user or a session marks the user's record as no longer current before the change is
 * acknowledged, and every remembered token leads to its user's record. So no answer after a change is for the old state.
 */
import type { MaybePromise } from '../users/user-store.ts'
import { type AccessTokenClaims, type AccessTokens, isTokenOf } from './access-tokens.ts'
import { CacheValidity } from './cache-validity.ts'
import { InFlightLookups, Lookup } from './in-flight-lookups.ts'
import type { InvalidationListener } from './invalidation.ts'
import type { LastRequests } from './last-requests.ts'
import type { Principal } from './principal.ts'
import type { SessionLimits } from './session.ts'
import type { FoundSession, SessionStore } from './session-store.ts'
import { copyString, RejectedTokens, TokenCache, tokenCapacity } from './token-cache.ts'
import type { UserCache } from './user-cache.ts'

export interface AuthenticatorDeps {
  readonly tokens: AccessTokens
  readonly sessions: Pick<SessionStore, 'find'>
  readonly userCache: UserCache
  readonly lastRequests: LastRequests
  readonly limits: SessionLimits
  readonly clock: () => number
  /** How many tokens to remember; by default as many as the heap has room for. */
  readonly capacity?: number
}

type Found = FoundSession | undefined

export class Authenticator implements InvalidationListener {
  readonly #parts: AuthenticatorDeps
  readonly #cache: TokenCache
  readonly #rejectedTokens: RejectedTokens
  readonly #inFlightLookups = new InFlightLookups()
  readonly #validity = new CacheValidity()

  constructor(parts: AuthenticatorDeps) {
    this.#parts = parts
    const capacity = parts.capacity ?? tokenCapacity()
    this.#cache = new TokenCache(capacity, parts.userCache)
    this.#rejectedTokens = new RejectedTokens(capacity)
  }

  /**
   * The principal that a token proves, with its last request noted, or `null`. At once unless the store has to be asked
   * across a network.
   * @throws {ServiceError} `storeUnavailable`
   */
  authenticate(token: string): MaybePromise<Principal | null> {
    const principal = this.#validity.isComplete ? this.#cache.get(token) : undefined
    if (principal === undefined) return this.#resolve(token)
    if (!principal.cachedUser.current) {
      this.#cache.drop(principal)
      return this.#resolve(token)
    }
    const now = this.#parts.clock()
    if (!this.#alive(principal, now)) {
      // Idle here: another instance may have seen it.
      this.#cache.drop(principal)
      return this.#resolve(token)
    }
    principal.used = true
    this.#parts.lastRequests.note(principal, now)
    return principal
  }

  /** To be called with every change of a user or of a session of theirs, before the change is acknowledged. */
  userChanged(userId: string): void {
    this.#validity.changed()
    this.#inFlightLookups.userChanged(userId)
    this.#parts.userCache.evict(userId)
  }

  /** For changes made by somebody else of whom nothing more is known. */
  anyoneChanged(): void {
    this.#validity.changed()
    this.#inFlightLookups.anyoneChanged()
    this.#parts.userCache.evictAll()
    this.#cache.clear()
  }

  /** While changes that others make are not heard of, the store is asked with every request: revocation comes first. */
  listening(isListening: boolean): void {
    if (this.#validity.listening(isListening)) this.anyoneChanged()
  }

  /** What is remembered stays as it is, and is kept true by what is heard: to fill the cache anew costs a busy store seconds. */
  late(isLate: boolean): void {
    this.#validity.late(isLate)
  }

  /** Whether it may be acted upon without asking: nothing has changed since, or the store was asked just now. */
  isCurrent({ cachedUser, askedAt }: Principal): boolean {
    return (cachedUser.current && this.#validity.isComplete) || this.#validity.isGood(askedAt)
  }

  #resolve(token: string): MaybePromise<Principal | null> {
    if (this.#rejectedTokens.has(token)) return null
    const claims = this.#parts.tokens.verify(token)
    if (claims === null) {
      this.#rejectedTokens.add(token)
      return null
    }
    if (this.#parts.clock() >= claims.expiresAt) return null
    const lookup = new Lookup(onAsk => this.#parts.sessions.find(claims.sessionId, onAsk))
    const admit = (found: Found) => this.#admit(token, claims, found, lookup.askedAt)
    const found = lookup.ask()
    return found instanceof Promise
      ? this.#inFlightLookups.settle(claims.userId, lookup, found, admit)
      : admit(found)
  }

  #admit(token: string, claims: AccessTokenClaims, found: Found, askedAt: number): Principal | null {
    if (found === undefined || found.user.disabled || !isTokenOf(claims, found.session)) {
      // Perhaps another instance's doing, of which nothing has been heard yet: an older answer that is still on its way must
      // not bring the token back.
      this.userChanged(claims.userId)
      return null
    }
    const { session, user, userKey } = found
    const { userCache, lastRequests, clock } = this.#parts
    const now = clock()
    const lastRequestAt = lastRequests.latestOfSession(session)
    const relies = this.#validity.isComplete
    const principal: Principal = {
      token: copyString(token),
      cachedUser: relies ? userCache.recordOf(user, userKey) : userCache.uncachedRecordOf(user, userKey),
      sessionId: session.id,
      impersonatedBy: session.impersonatedBy,
      expiresAt: Math.min(session.expiresAt, claims.expiresAt),
      lastRequestAt,
      storedRequestAt: lastRequestAt,
      askedAt: relies ? Number.NEGATIVE_INFINITY : askedAt,
      used: false,
    }
    if (!this.#alive(principal, now)) return null
    if (relies) this.#cache.add(principal)
    lastRequests.note(principal, now)
    if (!relies) userCache.depart(principal.cachedUser)
    return principal
  }

  #alive(principal: Principal, now: number): boolean {
    return now < principal.expiresAt && now - principal.lastRequestAt < this.#parts.limits.idle
  }
}
