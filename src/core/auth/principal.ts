/** What the authenticator caches: principals, one for each token, and their users. */
import { needsCode } from '../users/factors.ts'
import type { User } from '../users/user.ts'

/** The last request of a user who has made none. Earlier than every timestamp: an imported user's may be before 1970. */
export const NEVER = Number.NEGATIVE_INFINITY

/** A user with a recent request: the stored record, and what every request changes. */
export interface CachedUser {
  readonly user: User
  /** The number that the store assigned to the user. */
  readonly key: number
  /**
   * Exact; written to the store up to a second later. {@link NEVER} before the first request, not `null`: V8 updates a number in
   * place, but allocates one for every change of a field that is not always a number.
   */
  lastRequestAt: number
  /** Whether `lastRequestAt` waits for the next flush. */
  isWriteDue: boolean
  /**
   * False once the user, a session or an API key of theirs has changed, and while no change is notified to this record, because it is
   * not in the cache. The store must then be queried again.
   */
  current: boolean
  /** How many cached tokens refer to this record. */
  tokens: number
  /** The serialized user of the account route's responses, cached as long as this record. */
  accountText: string | null
}

/** The user who makes a request, and the session or API key that authenticates it. */
export interface Principal {
  /** The token, as presented. */
  readonly token: string
  readonly cachedUser: CachedUser
  /** The id of the session, or of the API key. */
  readonly credentialId: string
  /** What the API key may do; `null` for a session, which may do everything. */
  readonly scopes: readonly string[] | null
  /** How the session was authenticated, see `Session.amr`; empty for an API key. */
  readonly amr: readonly string[]
  /** The id of the admin key that impersonates the user; `null` for a session of the user's own, and for an API key. */
  readonly impersonatedBy: string | null
  /**
   * When the user last proved their identity (milliseconds since the epoch); 0 for an API key and an impersonated session, and for a
   * session from before an administrator removed the user's factors.
   */
  readonly authenticatedAt: number
  /** Milliseconds since the epoch: the absolute end of the session or API key, or infinity. */
  readonly expiresAt: number
  /** The session's idle time counts from here. */
  lastRequestAt: number
  /** The last request of the session or API key as stored, or as the next flush will store it. */
  storedRequestAt: number
  /**
   * When the store was queried (milliseconds of `performance.now()`), if no change is notified to {@link cachedUser}; else
   * negative infinity.
   */
  readonly queriedAt: number
  /** Whether it was used since the cache last considered it for eviction. */
  used: boolean
}

/** The user who makes a change, in a session. */
export type SessionOwner = Pick<Principal, 'cachedUser' | 'credentialId' | 'authenticatedAt'>

/**
 * The session of a principal who has proved their identity, for a change in it: an operation compares whether the proof has ended, and
 * whether one needs a code, because another proof is needed once that has changed.
 */
export const actingSession = ({ cachedUser, credentialId, authenticatedAt }: SessionOwner) => ({
  id: credentialId,
  needsCode: needsCode(cachedUser.user),
  authenticatedAt,
})

/** Whether an API key authenticates the request, not a session. */
export const isApiKeyPrincipal = ({ scopes }: Principal): boolean => scopes !== null
