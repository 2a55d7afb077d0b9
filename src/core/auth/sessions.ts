/** Lists and revokes sessions, of oneself and as an administrator. */

import { ServiceError } from '#base/errors'
import { type Actor, newEvent } from '../audit-log/event.ts'
import type { RevokeAllOptions, SessionStore, UserRefusal } from '../store/store.ts'
import type { Session, SessionLimits } from './session.ts'

/** Sessions in a list. A user with more sees the newest. */
const LIST_LIMIT = 1_000

export interface SessionsDeps {
  readonly store: SessionStore
  readonly limits: SessionLimits
  readonly clock: () => number
}

export class Sessions {
  readonly #deps: SessionsDeps

  constructor(deps: SessionsDeps) {
    this.#deps = deps
  }

  async list(userId: string): Promise<readonly Session[]> {
    const { store, limits, clock } = this.#deps
    const now = clock()
    return store.list(userId, now, now - limits.idle, LIST_LIMIT)
  }

  /**
   * Revokes one of the user's own sessions.
   * @throws {ServiceError} `sessionNotFound`, also for another user's session; `signInRequired` if the user was disabled or removed meanwhile
   */
  async revoke(userId: string, id: string, actor: Actor): Promise<void> {
    const outcome = await this.#revoke(userId, id, actor)
    if (outcome === 'revoked') return
    throw new ServiceError(outcome === 'sessionNotFound' ? outcome : 'signInRequired')
  }

  /** Revokes a session of a user, for an administrator. @throws {ServiceError} `sessionNotFound`: disabled users have none */
  async revokeOf(userId: string, id: string, actor: Actor): Promise<void> {
    if ((await this.#revoke(userId, id, actor)) !== 'revoked') throw new ServiceError('sessionNotFound')
  }

  /** Revokes the session of the request. A session that has already ended is no error. */
  async signOut(userId: string, id: string, actor: Actor): Promise<void> {
    await this.#revoke(userId, id, actor)
  }

  /** Revokes the user's own sessions, except `exceptId` if given. @throws {ServiceError} `signInRequired` */
  async revokeOwn(userId: string, actor: Actor, exceptId: string | null): Promise<void> {
    const outcome = await this.#revokeAll(userId, actor, { exceptId, onlyEnabled: true })
    if (outcome !== 'revoked') throw new ServiceError('signInRequired')
  }

  /** Revokes all sessions of a user. @throws {ServiceError} `userNotFound` */
  async revokeAll(userId: string, actor: Actor): Promise<void> {
    const outcome = await this.#revokeAll(userId, actor, { exceptId: null, onlyEnabled: false })
    if (outcome !== 'revoked') throw new ServiceError('userNotFound')
  }

  #revoke(userId: string, id: string, actor: Actor) {
    const { store, clock } = this.#deps
    return store.revoke(id, newEvent('session.ended', actor, userId, clock(), { session: id }))
  }

  #revokeAll(userId: string, actor: Actor, options: RevokeAllOptions): Promise<'revoked' | UserRefusal> {
    const { store, clock } = this.#deps
    const { exceptId } = options
    const details = exceptId === null ? null : { except: exceptId }
    const event = newEvent('sessions.ended', actor, userId, clock(), details)
    return store.revokeAll(event, options)
  }
}
