/**
 * Who is asking (§5.1.2). A token is verified and its session looked up once; from then on a request costs one look-up in
 * memory (under 1 µs, where verifying costs 6 and the session 11).
 *
 * Revocation: every change of a user or a session marks the user's record as no longer current before the change is
 * acknowledged, and every remembered token leads to its user's record. So no answer after a change is for the old state.
 */
import type { MaybePromise } from '../users/user-store.ts'
import { type AccessTokenClaims, type AccessTokens, isTokenOf } from './access-tokens.ts'
import { tokenCapacity } from './cache-capacity.ts'
import type { ChangeListener } from './change-listener.ts'
import { Forgeries } from './forgeries.ts'
import type { Identity } from './identity.ts'
import { IdentityCache, ownText } from './identity-cache.ts'
import type { KnownUsers } from './known-users.ts'
import type { LastRequests } from './last-requests.ts'
import { LookUp, LookUps } from './look-ups.ts'
import { Reliance } from './reliance.ts'
import type { SessionLimits } from './session.ts'
import type { FoundSession, SessionStore } from './session-store.ts'

export interface IdentitiesParts {
  readonly tokens: AccessTokens
  readonly sessions: Pick<SessionStore, 'find'>
  readonly knownUsers: KnownUsers
  readonly lastRequests: LastRequests
  readonly limits: SessionLimits
  readonly clock: () => number
  /** How many tokens to remember; by default as many as the heap has room for. */
  readonly capacity?: number
}

type Found = FoundSession | undefined

export class Identities implements ChangeListener {
  readonly #parts: IdentitiesParts
  readonly #cache: IdentityCache
  readonly #forgeries: Forgeries
  readonly #lookUps = new LookUps()
  readonly #reliance = new Reliance()

  constructor(parts: IdentitiesParts) {
    this.#parts = parts
    const capacity = parts.capacity ?? tokenCapacity()
    this.#cache = new IdentityCache(capacity, parts.knownUsers)
    this.#forgeries = new Forgeries(capacity)
  }

  /**
   * The identity that a token proves, with its last request noted, or `null`. At once unless the store has to be asked
   * across a network.
   * @throws {ServiceError} `storeUnavailable`
   */
  identify(token: string): MaybePromise<Identity | null> {
    const identity = this.#reliance.isComplete ? this.#cache.get(token) : undefined
    if (identity === undefined) return this.#resolve(token)
    if (!identity.known.current) {
      this.#cache.drop(identity)
      return this.#resolve(token)
    }
    const now = this.#parts.clock()
    if (!this.#alive(identity, now)) {
      // Idle here: another instance may have seen it.
      this.#cache.drop(identity)
      return this.#resolve(token)
    }
    identity.used = true
    this.#parts.lastRequests.note(identity, now)
    return identity
  }

  /** To be called with every change of a user or of a session of theirs, before the change is acknowledged. */
  userChanged(userId: string): void {
    this.#reliance.changed()
    this.#lookUps.userChanged(userId)
    this.#parts.knownUsers.evict(userId)
  }

  /** For changes made by somebody else of whom nothing more is known. */
  anyoneChanged(): void {
    this.#reliance.changed()
    this.#lookUps.anyoneChanged()
    this.#parts.knownUsers.evictAll()
    this.#cache.clear()
  }

  /** While changes that others make are not heard of, the store is asked with every request: revocation comes first. */
  listening(isListening: boolean): void {
    if (this.#reliance.listening(isListening)) this.anyoneChanged()
  }

  /** What is remembered stays as it is, and is kept true by what is heard: to fill the cache anew costs a busy store seconds. */
  late(isLate: boolean): void {
    this.#reliance.late(isLate)
  }

  /** Whether it may be acted upon without asking: nothing has changed since, or the store was asked just now. */
  isCurrent({ known, askedAt }: Identity): boolean {
    return (known.current && this.#reliance.isComplete) || this.#reliance.isGood(askedAt)
  }

  #resolve(token: string): MaybePromise<Identity | null> {
    if (this.#forgeries.has(token)) return null
    const claims = this.#parts.tokens.verify(token)
    if (claims === null) {
      this.#forgeries.add(token)
      return null
    }
    if (this.#parts.clock() >= claims.expiresAt) return null
    const lookUp = new LookUp(onAsk => this.#parts.sessions.find(claims.sessionId, onAsk))
    const admit = (found: Found) => this.#admit(token, claims, found, lookUp.askedAt)
    const found = lookUp.ask()
    return found instanceof Promise ? this.#lookUps.settle(claims.userId, lookUp, found, admit) : admit(found)
  }

  #admit(token: string, claims: AccessTokenClaims, found: Found, askedAt: number): Identity | null {
    if (found === undefined || found.user.disabled || !isTokenOf(claims, found.session)) {
      // Perhaps another instance's doing, of which nothing has been heard yet: an older answer that is still on its way must
      // not bring the token back.
      this.userChanged(claims.userId)
      return null
    }
    const { session, user, userKey } = found
    const { knownUsers, lastRequests, clock } = this.#parts
    const now = clock()
    const lastRequestAt = lastRequests.latestOfSession(session)
    const relies = this.#reliance.isComplete
    const identity: Identity = {
      token: ownText(token),
      known: relies ? knownUsers.recordOf(user, userKey) : knownUsers.passingRecordOf(user, userKey),
      sessionId: session.id,
      impersonatedBy: session.impersonatedBy,
      expiresAt: Math.min(session.expiresAt, claims.expiresAt),
      lastRequestAt,
      storedRequestAt: lastRequestAt,
      askedAt: relies ? Number.NEGATIVE_INFINITY : askedAt,
      used: false,
    }
    if (!this.#alive(identity, now)) return null
    if (relies) this.#cache.add(identity)
    lastRequests.note(identity, now)
    if (!relies) knownUsers.depart(identity.known)
    return identity
  }

  #alive(identity: Identity, now: number): boolean {
    return now < identity.expiresAt && now - identity.lastRequestAt < this.#parts.limits.idle
  }
}
