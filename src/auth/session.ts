import { v7 as uuidv7 } from 'uuid'
import type { User } from '../users/user.ts'
import type { MaybePromise } from '../users/user-store.ts'

/** Where a session was opened from, as its owner is shown it. */
export interface SessionClient {
  readonly ip: string | null
  readonly userAgent: string | null
}

/** Of a session that nobody's request opened. */
const NO_CLIENT: SessionClient = { ip: null, userAgent: null }

/** Characters of a user agent that are kept. */
const USER_AGENT_LENGTH = 256

/** What one sign-in opened. Moments are milliseconds since the epoch; `expiresAt` is a whole second, as a token's `exp` is. */
export interface Session extends SessionClient {
  readonly id: string
  readonly userId: string
  readonly createdAt: number
  /** The session's absolute end, whatever happens. */
  readonly expiresAt: number
  /** From here the idle time counts; exact in memory, in the store up to a minute older (`last-requests.ts`). */
  readonly lastRequestAt: number
}

export interface SessionLimits {
  /** Milliseconds until the absolute end. */
  readonly lifetime: number
  /** Milliseconds without a request after which a session ends. */
  readonly idle: number
}

export const newSession = (
  userId: string,
  now: number,
  { lifetime }: SessionLimits,
  { ip, userAgent }: SessionClient = NO_CLIENT,
): Session => ({
  id: uuidv7(),
  userId,
  createdAt: now,
  expiresAt: Math.ceil((now + lifetime) / 1_000) * 1_000,
  lastRequestAt: now,
  ip,
  userAgent: userAgent?.slice(0, USER_AGENT_LENGTH) ?? null,
})

export type NewUser = Omit<User, 'lastRequestAt'> & { readonly passwordHash: string }

/** What sign-up, sign-in and identification need of a store. Every write is on disk before its promise resolves. */
export interface SessionStore {
  /** Adds a user together with a first session. @returns false when the e-mail is taken. */
  addUser(user: NewUser, session: Session): Promise<boolean>
  /**
   * Opens a session if, at that very moment, the user is enabled and the password is still the one that was verified.
   * @returns false when it is not so.
   */
  open(session: Session, verifiedHash: string): Promise<boolean>
  /** Replaces a password's hash by a stronger one of the same password, if it is still `from`. */
  rehash(userId: string, from: string, to: string): Promise<void>
  /**
   * Replaces a password's hash by another password's, ends every session of the user and opens this one, if at that very
   * moment the user is enabled and the password is still the one that was verified.
   * @returns the user as changed, `undefined` when it is not so.
   */
  changePassword(session: Session, verifiedHash: string, newHash: string): Promise<User | undefined>
  /** Ends one session of a user. @returns false when the user has no such session. */
  end(userId: string, id: string): Promise<boolean>
  /** Ends every session of a user, but for one. @returns false when there is no such user. */
  endAll(userId: string, exceptId: string | null): Promise<boolean>
  /** The newest sessions of a user that have not reached their absolute end or been idle since `idleSince`, newest first. */
  list(userId: string, now: number, idleSince: number, limit: number): MaybePromise<readonly Session[]>
  /**
   * Whether what is found may still be used is the caller's to judge.
   * @param onAsk called when the store is really asked, which may be long after: what changed before then is in the answer.
   */
  find(id: string, onAsk?: () => void): MaybePromise<FoundSession | undefined>
}

/** A session with its user, as the store has them. */
export interface FoundSession {
  readonly session: Session
  readonly user: User
  /** The store's own number of the user, never given twice: what it notes last requests by. */
  readonly userKey: number
}
