import { type Actor, type AuditEvent, newEvent } from '../audit-log/event.ts'
import { ServiceError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { User } from '../users/user.ts'
import type { MaybePromise, UserRefusal } from '../users/user-store.ts'

/** Where a session was opened from, as its owner is shown it. */
export interface SessionClient {
  readonly ip: string | null
  readonly userAgent: string | null
}

/** Of a session that nobody's request opened. */
const NO_CLIENT: SessionClient = { ip: null, userAgent: null }

/** Characters of a user agent that are kept. */
const USER_AGENT_LENGTH = 256

/** What one sign-in opened. Timestamps are milliseconds since the epoch; `expiresAt` is a whole second, as a token's `exp` is. */
export interface Session extends SessionClient {
  readonly id: string
  readonly userId: string
  readonly createdAt: number
  /** The session's absolute end, whatever happens. */
  readonly expiresAt: number
  /** The id of the admin key by which somebody acts as the user; `null` in a session of the user's own. */
  readonly impersonatedBy: string | null
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
  id: newId(),
  userId,
  createdAt: now,
  expiresAt: Math.ceil((now + lifetime) / 1_000) * 1_000,
  impersonatedBy: null,
  lastRequestAt: now,
  ip,
  userAgent: userAgent?.slice(0, USER_AGENT_LENGTH) ?? null,
})

/**
 * What identification and sessions need of a store. Every write is on disk before its promise resolves; the event
 * that it is given is kept in the same transaction, if there was a change.
 */
export interface SessionStore {
  /**
   * Opens a session if, at that very timestamp, the user is enabled and the password is still the one that was verified.
   * @param verifiedHash `null` for a session that no password opens.
   */
  open(session: Session, verifiedHash: string | null, event: AuditEvent): Promise<'opened' | UserRefusal>
  /** Ends one session of the event's user, who is enabled. */
  end(id: string, event: AuditEvent): Promise<'ended' | 'sessionNotFound' | UserRefusal>
  /**
   * Ends every session of the event's user, but for one.
   * @param onlyEnabled what users do themselves ends with their being disabled.
   */
  endAll(exceptId: string | null, event: AuditEvent, onlyEnabled: boolean): Promise<'ended' | UserRefusal>
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

/** What users do with their sessions, and administrators with a user's. */

/** Sessions in a list: who has more is shown the newest. */
const LIST_LIMIT = 1_000

export interface SessionsDeps {
  readonly store: SessionStore
  readonly limits: SessionLimits
  readonly clock: () => number
}

export class Sessions {
  readonly #parts: SessionsDeps

  constructor(parts: SessionsDeps) {
    this.#parts = parts
  }

  /** The sessions of a user that can still be used, newest first. */
  async list(userId: string): Promise<readonly Session[]> {
    const { store, limits, clock } = this.#parts
    const now = clock()
    return store.list(userId, now, now - limits.idle, LIST_LIMIT)
  }

  /**
   * Ends a session of the user's own.
   * @throws {ServiceError} `sessionNotFound`, also for another user's; `signInRequired` when the user was disabled or removed
   * in the meantime
   */
  async end(userId: string, id: string, actor: Actor): Promise<void> {
    const { store, clock } = this.#parts
    const event = newEvent('session.ended', actor, userId, clock(), { session: id })
    const outcome = await store.end(id, event)
    if (outcome === 'ended') return
    throw new ServiceError(outcome === 'sessionNotFound' ? outcome : 'signInRequired')
  }

  /** Ends the session that asks; one that has ended meanwhile is what was wanted. */
  async signOut(userId: string, id: string, actor: Actor): Promise<void> {
    const { store, clock } = this.#parts
    await store.end(id, newEvent('session.ended', actor, userId, clock(), { session: id }))
  }

  /** Ends a user's own sessions, but for one where `exceptId` is given. @throws {ServiceError} `signInRequired` */
  async endOwn(userId: string, actor: Actor, exceptId: string | null): Promise<void> {
    const outcome = await this.#endAll(userId, actor, exceptId, true)
    if (outcome !== 'ended') throw new ServiceError('signInRequired')
  }

  /** Ends a user's sessions. @throws {ServiceError} `userNotFound` */
  async endAll(userId: string, actor: Actor): Promise<void> {
    const outcome = await this.#endAll(userId, actor, null, false)
    if (outcome !== 'ended') throw new ServiceError('userNotFound')
  }

  #endAll(userId: string, actor: Actor, exceptId: string | null, onlyEnabled: boolean) {
    const { store, clock } = this.#parts
    const details = exceptId === null ? null : { except: exceptId }
    const event = newEvent('sessions.ended', actor, userId, clock(), details)
    return store.endAll(exceptId, event, onlyEnabled)
  }
}
