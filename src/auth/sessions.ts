/** What users do with their sessions, and administrators with a user's. */

import { type Actor, newEvent } from '../audit-log/event.ts'
import { ServiceError } from '../errors.ts'
import type { Session, SessionLimits } from './session.ts'
import type { SessionStore } from './session-store.ts'

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
