import type { User } from '../users/user.ts'
import type { CachedUser } from './principal.ts'

/**
 * The users of remembered tokens, one record each. The timestamp of a last request may be newer here than in the store, so
 * a record that is let go of leaves its timestamp behind until a flush has certainly written it.
 */
export class UserCache {
  readonly #current = new Map<string, CachedUser>()
  /** Timestamps by user id of records that were let go of since the flush under way, or the last one, began. */
  #departed = new Map<string, number>()
  /** And of those before: the flush that has begun writes them. */
  #beingWritten = new Map<string, number>()

  /** The record of a user as the store has one: the current record, else a new one, which is not remembered yet. */
  recordOf(user: User, key: number): CachedUser {
    return this.#current.get(user.id) ?? this.#newRecord(user, key, true)
  }

  /** A record for one request, which is never remembered: no change will reach it. */
  uncachedRecordOf(user: User, key: number): CachedUser {
    return this.#newRecord(user, key, false)
  }

  add(cachedUser: CachedUser): void {
    this.#current.set(cachedUser.user.id, cachedUser)
  }

  /** To be called when no token leads to a record any more, or it is not current. */
  remove(cachedUser: CachedUser): void {
    this.#current.delete(cachedUser.user.id)
    this.depart(cachedUser)
  }

  /** To be called when a passing record has its timestamp. */
  depart({ user, lastRequestAt }: CachedUser): void {
    this.#departed.set(user.id, Math.max(lastRequestAt, this.#departed.get(user.id) ?? 0))
    const current = this.#current.get(user.id)
    if (current !== undefined) current.lastRequestAt = Math.max(lastRequestAt, current.lastRequestAt)
  }

  /** Marks a user's record as no longer current: whoever meets it asks the store again. */
  evict(id: string): void {
    const cachedUser = this.#current.get(id)
    if (cachedUser === undefined) return
    cachedUser.current = false
    this.remove(cachedUser)
  }

  evictAll(): void {
    for (const id of this.#current.keys()) this.evict(id)
  }

  /** The last request of a user as far as this instance knows, given what the store has. */
  latest(id: string, stored: number | null): number | null {
    const moment = Math.max(
      this.#current.get(id)?.lastRequestAt ?? 0,
      this.#departed.get(id) ?? 0,
      this.#beingWritten.get(id) ?? 0,
      stored ?? 0,
    )
    return moment === 0 ? null : moment
  }

  /** The user with the timestamp of the last request that is known here. */
  withLatestRequest<Known extends User>(user: Known): Known {
    const lastRequestAt = this.latest(user.id, user.lastRequestAt)
    return lastRequestAt === user.lastRequestAt ? user : { ...user, lastRequestAt }
  }

  /** A flush of all that is noted begins: it settles whoever departed until now. */
  flushBegins(): void {
    for (const [id, moment] of this.#departed) this.#beingWritten.set(id, moment)
    this.#departed = new Map()
  }

  flushSucceeded(): void {
    this.#beingWritten.clear()
  }

  #newRecord(user: User, key: number, current: boolean): CachedUser {
    const lastRequestAt = this.latest(user.id, user.lastRequestAt) ?? 0
    return { user, key, lastRequestAt, noted: false, current, tokens: 0, accountText: null }
  }
}
