/** What the authenticator caches: principals by token, and their users. */
import { needsCode } from '../users/factors.ts'
import type { User } from '../users/user.ts'
import type { CachedClient } from './client-tokens.ts'

/** The last request of a user who has made none. Earlier than every timestamp: an imported user's may be before 1970. */
export const NEVER = Number.NEGATIVE_INFINITY

/** A user with a recent request: the stored record, and what every request changes. */
export interface CachedUser {
  readonly user: User
  readonly key: number
  /** Written to the store later. {@link NEVER}, not `null`: V8 updates a number in place, but allocates one for a field that may be null. */
  lastRequestAt: number
  /** Whether `lastRequestAt` waits for the next flush. */
  isWriteDue: boolean
  /** False once the user, a session or an API key of theirs has changed, and for a record outside of the cache: the store must be queried. */
  current: boolean
  /** How many cached tokens refer to this record. */
  tokens: number
  /** The user as `GET /account` returns it. */
  accountText: string | null
}

export interface Principal {
  readonly token: string
  readonly cachedUser: CachedUser
  readonly credentialId: string
  /** The client to which the user has granted access; `null` for a session or an API key. */
  readonly client: CachedClient | null
  /** `null` for a session, which may do everything. */
  readonly scopes: readonly string[] | null
  /** How the session was authenticated, see `Session.amr`; empty for an API key or a grant. */
  readonly amr: readonly string[]
  /** The admin key that impersonates the user; else `null`. */
  readonly impersonatedBy: string | null
  /** When the user last proved their identity; 0 for an API key, a grant, an impersonated session, and after the removal of factors. */
  readonly authenticatedAt: number
  /** Milliseconds since the epoch, or infinity. */
  readonly expiresAt: number
  /** The session's idle time counts from here. */
  lastRequestAt: number
  /** As stored, or as the next flush will store it. */
  storedRequestAt: number
  /** Milliseconds of `performance.now()` if no change is notified to {@link cachedUser}; else negative infinity. */
  readonly queriedAt: number
  /** Whether it was used since the cache last considered it for eviction. */
  used: boolean
}

export type SessionOwner = Pick<Principal, 'cachedUser' | 'credentialId' | 'authenticatedAt'>

/**
 * The session of a principal who has proved their identity, for a change in it. The operation checks that the proof has not ended, and that
 * another one would need the same.
 */
export const actingSession = ({ cachedUser, credentialId, authenticatedAt }: SessionOwner) => ({
  id: credentialId,
  needsCode: needsCode(cachedUser.user),
  authenticatedAt,
})

/** Whether it is no session, but an API key or a grant: it may do what its scopes allow. */
export const isApiKeyPrincipal = ({ scopes }: Principal): boolean => scopes !== null
