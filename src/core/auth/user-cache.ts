/** The cache of users with a cached token. */
import type { User } from '../users/user.ts'
import { type CachedUser, NEVER } from './principal.ts'

/** Milliseconds for which the version of a user is remembered, at least. By then the change is notified, or caches are bypassed. */
const VERSION_KEPT = 1_000

/**
 * The users of cached tokens, one record each. The last request may be newer here than in the store, so that of an evicted record is kept
 * until the flush after the one that has written it, for reads that began before the write.
 */
export class UserCache {
  readonly #current = new Map<string, CachedUser>()
  /** Timestamps by user id of records that were evicted since the latest flush started. */
  #evicted = new Map<string, number>()
  /** Timestamps of records that were evicted before: the latest flush writes them. */
  #flushing = new Map<string, number>()
  #hasFlushed = false
  /** The newest version of each user who was read lately; and of those who were read before. */
  #versions = new Map<string, number>()
  #earlierVersions = new Map<string, number>()
  /** When the first of {@link UserCache.#versions} was read, in milliseconds of `performance.now()`. */
  #versionsSince = Number.NEGATIVE_INFINITY

  get(id: string): CachedUser | undefined {
    return this.#current.get(id)
  }

  /** The current record of a stored user; else a new record, which is not cached yet. */
  recordOf(user: User, key: number): CachedUser {
    const current = this.#current.get(user.id)
    if (current !== undefined) return current
    const lastRequestAt = this.#latestOf(user)
    return { user, key, lastRequestAt, isWriteDue: false, current: true, tokens: 0, accountText: null }
  }

  /**
   * A record for one request, never cached. The literal is not shared with {@link UserCache.recordOf}: V8 would create these in the old
   * generation too.
   */
  uncachedRecordOf(user: User, key: number): CachedUser {
    const lastRequestAt = this.#latestOf(user)
    return { user, key, lastRequestAt, isWriteDue: false, current: false, tokens: 0, accountText: null }
  }

  add(cachedUser: CachedUser): void {
    this.#current.set(cachedUser.user.id, cachedUser)
  }

  /** Must be called when no token refers to a record, or it is no longer current. */
  remove(cachedUser: CachedUser): void {
    cachedUser.current = false
    this.#current.delete(cachedUser.user.id)
    this.saveTimestamp(cachedUser.user.id, cachedUser.lastRequestAt)
  }

  /** Keeps the timestamp of a user who is not in the cache, or is removed from it. */
  saveTimestamp(id: string, lastRequestAt: number): void {
    this.#evicted.set(id, Math.max(lastRequestAt, this.#evicted.get(id) ?? NEVER))
    const current = this.#current.get(id)
    if (current !== undefined) current.lastRequestAt = Math.max(lastRequestAt, current.lastRequestAt)
  }

  /** The next request of the user queries the store. */
  evict(id: string): void {
    const cachedUser = this.#current.get(id)
    if (cachedUser !== undefined) this.remove(cachedUser)
  }

  evictAll(): void {
    for (const id of this.#current.keys()) this.evict(id)
  }

  /**
   * Must be called with every user whom a query has found, before a response shows the user: another instance may have made a change that is
   * not notified here yet, and from now on this one shows nothing older.
   */
  recordVersion({ id, version }: Pick<User, 'id' | 'version'>): void {
    const now = performance.now()
    if (now - this.#versionsSince >= VERSION_KEPT) {
      this.#earlierVersions = this.#versions
      this.#versions = new Map()
      this.#versionsSince = now
    }
    if (version > (this.#versions.get(id) ?? 0)) this.#versions.set(id, version)
    const current = this.#current.get(id)
    if (current !== undefined && current.user.version < version) this.remove(current)
  }

  isOutdated(id: string, version: number): boolean {
    return version < (this.#versions.get(id) ?? 0) || version < (this.#earlierVersions.get(id) ?? 0)
  }

  /** The newest last request as stored, or as known to this instance; `null` before the first. */
  latest(id: string, stored: number | null): number | null {
    const timestamp = Math.max(
      this.#current.get(id)?.lastRequestAt ?? NEVER,
      this.#evicted.get(id) ?? NEVER,
      this.#flushing.get(id) ?? NEVER,
      stored ?? NEVER,
    )
    return timestamp === NEVER ? null : timestamp
  }

  withLastRequest<Known extends User>(user: Known): Known {
    const lastRequestAt = this.latest(user.id, user.lastRequestAt)
    return lastRequestAt === user.lastRequestAt ? user : { ...user, lastRequestAt }
  }

  flushStarted(): void {
    if (this.#hasFlushed || this.#flushing.size === 0) this.#flushing = this.#evicted
    else for (const [id, timestamp] of this.#evicted) this.#flushing.set(id, timestamp)
    this.#evicted = new Map()
    this.#hasFlushed = false
  }

  flushSucceeded(): void {
    this.#hasFlushed = true
  }

  #latestOf(user: User): number {
    return this.latest(user.id, user.lastRequestAt) ?? NEVER
  }
}
