import type { User } from '../users/user.ts'
import type { KnownUser } from './identity.ts'

/**
 * The users of remembered tokens, one record each. The moment of a last request may be newer here than in the store, so
 * a record that is let go of leaves its moment behind until a flush has certainly written it.
 */
export class KnownUsers {
  readonly #current = new Map<string, KnownUser>()
  /** Moments by user id of records that were let go of since the flush under way, or the last one, began. */
  #departed = new Map<string, number>()
  /** And of those before: the flush that has begun writes them. */
  #beingWritten = new Map<string, number>()

  /** The record of a user as the store has one: the current record, else a new one, which is not remembered yet. */
  recordOf(user: User, key: number): KnownUser {
    return this.#current.get(user.id) ?? this.#newRecord(user, key, true)
  }

  /** A record for one request, which is never remembered: no change will reach it. */
  passingRecordOf(user: User, key: number): KnownUser {
    return this.#newRecord(user, key, false)
  }

  add(known: KnownUser): void {
    this.#current.set(known.user.id, known)
  }

  /** To be called when no token leads to a record any more, or it is not current. */
  remove(known: KnownUser): void {
    this.#current.delete(known.user.id)
    this.depart(known)
  }

  /** To be called when a passing record has its moment. */
  depart({ user, lastRequestAt }: KnownUser): void {
    this.#departed.set(user.id, Math.max(lastRequestAt, this.#departed.get(user.id) ?? 0))
    const current = this.#current.get(user.id)
    if (current !== undefined) current.lastRequestAt = Math.max(lastRequestAt, current.lastRequestAt)
  }

  /** Marks a user's record as no longer current: whoever meets it asks the store again. */
  evict(id: string): void {
    const known = this.#current.get(id)
    if (known === undefined) return
    known.current = false
    this.remove(known)
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

  /** The user with the moment of the last request that is known here. */
  withLatest<Known extends User>(user: Known): Known {
    return { ...user, lastRequestAt: this.latest(user.id, user.lastRequestAt) }
  }

  /** A flush of all that is noted begins: it settles whoever departed until now. */
  flushBegins(): void {
    for (const [id, moment] of this.#departed) this.#beingWritten.set(id, moment)
    this.#departed = new Map()
  }

  flushSucceeded(): void {
    this.#beingWritten.clear()
  }

  #newRecord(user: User, key: number, current: boolean): KnownUser {
    const lastRequestAt = this.latest(user.id, user.lastRequestAt) ?? 0
    return { user, key, lastRequestAt, noted: false, current, tokens: 0, accountText: null }
  }
}
