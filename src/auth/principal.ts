/** What the authenticator caches: principals, one for each token, and their users. */
import type { User } from '../users/user.ts'

/** A user with a recent request: the stored record, and what every request changes. */
export interface CachedUser {
  readonly user: User
  /** The number that the store assigned to the user. */
  readonly key: number
  /**
   * Exact; written to the store up to a second later. 0 before the first request, never `null`: V8 updates a number in place,
   * but allocates one for every change of a field that is not always a number.
   */
  lastRequestAt: number
  /** Whether `lastRequestAt` waits for the next flush. */
  isWriteDue: boolean
  /** False once the user or one of their sessions has changed. The store must then be queried again. */
  current: boolean
  /** How many cached tokens refer to this record. */
  tokens: number
  /** The serialized user of the account route's responses, cached as long as this record. */
  accountText: string | null
}

/** The user who makes a request, and the session that authenticates it. */
export interface Principal {
  /** The token, as presented. */
  readonly token: string
  readonly cachedUser: CachedUser
  readonly sessionId: string
  /** The id of the admin key that impersonates the user; `null` in a session of the user's own. */
  readonly impersonatedBy: string | null
  /** Milliseconds since the epoch, the session's absolute end. */
  readonly expiresAt: number
  /** The session's idle time counts from here. */
  lastRequestAt: number
  /** The session's last request as stored, or as the next flush will store it. */
  storedRequestAt: number
  /**
   * When the store was queried (milliseconds of `performance.now()`), if no change is notified to {@link cachedUser}; else
   * negative infinity.
   */
  readonly queriedAt: number
  /** Whether it was used since the cache last considered it for eviction. */
  used: boolean
}
