import type { User } from '../users/user.ts'

/** A user who made a request of late: the stored record, and what every request changes. */
export interface CachedUser {
  readonly user: User
  /** The store's own number of the user. */
  readonly key: number
  /**
   * Exact; reaches the store up to a second later. 0 before the first, and never `null`: V8 changes a number in its place,
   * but makes a new one with every change of a field that is not always a number.
   */
  lastRequestAt: number
  /** Whether a write of `lastRequestAt` is already due. */
  noted: boolean
  /** False from the timestamp the user or a session of theirs changed: whoever holds this record must look again. */
  current: boolean
  /** How many remembered tokens lead to this record. */
  tokens: number
  /** What the account's route made of the user for its answers: gone with this record. */
  accountText: string | null
}

/** Who makes a request, and by which session. */
export interface Principal {
  /** The token that proves it, as it was presented. */
  readonly token: string
  readonly cachedUser: CachedUser
  readonly sessionId: string
  /** The id of the admin key by which somebody acts as the user. */
  readonly impersonatedBy: string | null
  /** Milliseconds since the epoch, the session's absolute end. */
  readonly expiresAt: number
  /** From here the session's idle time counts. */
  lastRequestAt: number
  /** The session's last request as the store has it, or is about to. */
  storedRequestAt: number
  /** When the store was asked (milliseconds of `performance.now()`), if no change reaches {@link known}; else long ago. */
  readonly askedAt: number
  /** Used since the cache last looked for something to forget. */
  used: boolean
}
