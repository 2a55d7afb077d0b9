/**
 * The last request of each user (§5.1.2; docs/design.md, "Hot path"), session, API key and admin key: exact in memory, written once an
 * interval (`LAST_REQUEST_INTERVAL`), in slices, and never set back. A stop loses none, a crash at most those of one interval.
 */
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { DURATIONS, Histogram, type HistogramValue } from '#base/statistics/histogram'
import { type CachedUser, isApiKeyPrincipal, type Principal } from './principal.ts'
import { sortRequests } from './sort-requests.ts'
import { heapTokenCapacity } from './token-cache.ts'
import type { UserCache } from './user-cache.ts'

/** Flattened pairs: the store's number of a user, and milliseconds since the epoch. A write by id would cost four times as much. */
export type UserLastRequests = Float64Array

export interface CredentialLastRequest {
  readonly id: string
  readonly at: number
}

export interface LastRequestStore {
  /** Raises the timestamps of users and sessions to the given ones, never lowers them. Removed ones are ignored. */
  recordLastRequests(users: UserLastRequests, sessions: readonly CredentialLastRequest[]): Promise<void>
}

export interface KeyRequestStore {
  /** Raises the timestamps of keys to the given ones, never lowers them. Removed keys are ignored. */
  recordRequests(keys: readonly CredentialLastRequest[]): Promise<void>
}

interface CachedCredential {
  readonly credentialId: string
  readonly lastRequestAt: number
}

/** An admin key of the store, as its cache has it. */
export interface CachedAdminKeyRequests extends CachedCredential {
  lastRequestAt: number
  /** The last request as stored, or as the next flush will store it. */
  storedRequestAt: number
}

/** The shortest interval, in milliseconds, of flushes of sessions and keys, and of attempts to write at a stop. */
const MIN_INTERVAL = 1_000

/** Users who may be due in the memory of a token on the heap. 128 bytes were measured for one who is not cached, and 16 for a further request. */
const DUE_USERS = 8

/** Rows of one write: few enough that a slice blocks neither the event loop nor the writer for long. */
const SLICE = 5_000

/** Users that are read in one piece: about a millisecond, mostly to load each from memory. */
const YIELD = 16_384

/** A key's timestamp is written once it is newer by this many milliseconds, or by the interval of users if that is longer. */
const MIN_KEY_STEP = 60_000

/** A session's too, or once it is newer by this fraction of the idle time. */
const IDLE_FRACTION = 1 / 100

class DueUsers {
  /** Cached users, each once. An array, because a map would be filled again each second. */
  #cached: CachedUser[] = []
  /** Flattened pairs of key and timestamp, one for each request of an uncached user. Objects would be copied by garbage collection. */
  #pairs: number[] = []
  /** What the last flush has taken and not written. */
  #unwritten: UserLastRequests = new Float64Array()

  /** Counts users who are not cached once for each of their requests. */
  get size(): number {
    return this.#cached.length + (this.#pairs.length + this.#unwritten.length) / 2
  }

  addCached(cachedUser: CachedUser): void {
    this.#cached.push(cachedUser)
  }

  add(key: number, at: number): void {
    this.#pairs.push(key, at)
  }

  /** Removes all. @returns them sorted by key, the newest of each user ({@link sortRequests}). */
  async take(): Promise<UserLastRequests> {
    const [cached, pairs, unwritten] = [this.#cached, this.#pairs, this.#unwritten]
    this.#cached = []
    this.#pairs = []
    this.#unwritten = new Float64Array()
    const taken = new Float64Array(cached.length * 2 + pairs.length + unwritten.length)
    for (let index = 0; index < cached.length; index += 1) {
      const cachedUser = cached[index] as CachedUser
      cachedUser.isWriteDue = false
      taken[index * 2] = cachedUser.key
      taken[index * 2 + 1] = cachedUser.lastRequestAt
      if (index % YIELD === YIELD - 1) await nextTurn()
    }
    taken.set(pairs, cached.length * 2)
    taken.set(unwritten, cached.length * 2 + pairs.length)
    return sortRequests(taken)
  }

  /** Counts each user once. */
  async merge(): Promise<void> {
    this.putBack(await this.take())
  }

  putBack(requests: UserLastRequests): void {
    this.#unwritten = requests
  }
}

/** Timestamps of one kind of credentials that are due, by the ids of the credentials. */
class DueCredentials {
  #due = new Map<string, CachedCredential>()
  /** Timestamps that the current flush has not written yet. */
  #writing = new Map<string, CachedCredential>()

  get isDue(): boolean {
    return this.#due.size > 0
  }

  get isUnwritten(): boolean {
    return this.#writing.size > 0
  }

  add(credential: CachedCredential): void {
    this.#due.set(credential.credentialId, credential)
  }

  /** 0 if no timestamp of the credential is due. */
  latestOf(credentialId: string): number {
    return (this.#due.get(credentialId) ?? this.#writing.get(credentialId))?.lastRequestAt ?? 0
  }

  flushStarted(): void {
    this.#writing = this.#due
    this.#due = new Map()
  }

  /** Passes the next slice to `write`. @returns how many timestamps were written. */
  async writeSlice(write: (requests: readonly CredentialLastRequest[]) => Promise<void>): Promise<number> {
    const slice = [...this.#writing.values().take(SLICE)]
    await write(slice.map(({ credentialId, lastRequestAt }) => ({ id: credentialId, at: lastRequestAt })))
    for (const { credentialId } of slice) this.#writing.delete(credentialId)
    return slice.length
  }

  flushFailed(): void {
    for (const [id, credential] of this.#writing) if (!this.#due.has(id)) this.#due.set(id, credential)
    this.#writing = new Map()
  }
}

export interface LastRequestsDeps {
  readonly userCache: UserCache
  readonly store: LastRequestStore
  readonly apiKeys: KeyRequestStore
  readonly adminKeys: KeyRequestStore
  /** Milliseconds between two flushes of users. Sessions that end after a short idle time are written more often. */
  readonly interval: number
  readonly idle: number
  /** Milliseconds in which `close` repeats a failing flush: a stop loses nothing if the store recovers in time. */
  readonly closing: number
  /** Called when a flush failed. The next one repeats its writes. */
  readonly onFailure: (error: unknown) => void
  /** How many users may be due before a flush starts early; by default {@link DUE_USERS} for each token on the heap. */
  readonly flushAt?: number
}

export interface FlushStatistics {
  readonly rows: number
  readonly failures: number
  /** Seconds of each flush that had rows to write. */
  readonly durations: HistogramValue
}

export class LastRequests {
  readonly #deps: LastRequestsDeps
  readonly #keyStep: number
  readonly #sessionStep: number
  /** How many flushes of sessions and keys there are in one interval of users. */
  readonly #flushes: number
  #flushesUntilUsers: number
  readonly #flushAt: number
  /** Whether the last flush failed. The next one then waits for the timer. */
  #isFailing = false
  readonly #users = new DueUsers()
  readonly #sessions = new DueCredentials()
  readonly #apiKeys = new DueCredentials()
  readonly #adminKeys = new DueCredentials()
  readonly #credentials = [this.#sessions, this.#apiKeys, this.#adminKeys]
  #flushing: Promise<void> | null = null
  #timer: NodeJS.Timeout | null = null
  readonly #durations = new Histogram(DURATIONS)
  #rows = 0
  #failures = 0

  constructor(deps: LastRequestsDeps) {
    this.#deps = deps
    this.#keyStep = Math.max(MIN_KEY_STEP, deps.interval)
    this.#sessionStep = Math.min(deps.idle * IDLE_FRACTION, this.#keyStep)
    this.#flushes = Math.ceil(deps.interval / Math.max(MIN_INTERVAL, this.#sessionStep))
    this.#flushesUntilUsers = this.#flushes
    this.#flushAt = deps.flushAt ?? heapTokenCapacity() * DUE_USERS
  }

  get statistics(): FlushStatistics {
    return { rows: this.#rows, failures: this.#failures, durations: this.#durations.value }
  }

  /** Records a request of a cached principal. Nearly always it assigns two numbers, because the user is already due. */
  record(principal: Principal, now: number): void {
    const { cachedUser } = principal
    // Each is compared separately: a clock that was set back, or is behind another instance's, sets no timestamp back.
    if (now > principal.lastRequestAt) principal.lastRequestAt = now
    if (now < cachedUser.lastRequestAt) return
    cachedUser.lastRequestAt = now
    if (!cachedUser.isWriteDue) {
      cachedUser.isWriteDue = true
      this.#users.addCached(cachedUser)
      this.#flushEarly()
    }
    // The step of keys is not shorter, so nearly every request needs one comparison.
    if (now - principal.storedRequestAt >= this.#sessionStep) this.#recordCredential(principal, now)
  }

  /** Records the request of a principal that is not cached. The principal itself is not kept until the flush. */
  recordDetached(principal: Principal, now: number): void {
    const { cachedUser, credentialId } = principal
    if (now > principal.lastRequestAt) principal.lastRequestAt = now
    if (now < cachedUser.lastRequestAt) return
    cachedUser.lastRequestAt = now
    this.#users.add(cachedUser.key, now)
    this.#flushEarly()
    if (now - principal.storedRequestAt >= this.#sessionStep)
      this.#recordCredential(principal, now, { credentialId, lastRequestAt: principal.lastRequestAt })
  }

  recordAdminKey(adminKey: CachedAdminKeyRequests, now: number): void {
    if (now > adminKey.lastRequestAt) adminKey.lastRequestAt = now
    if (now - adminKey.storedRequestAt < this.#keyStep) return
    adminKey.storedRequestAt = now
    this.#adminKeys.add(adminKey)
  }

  /** The newest last request of a session or key: `stored`, or a later one that is not written yet. */
  latestOf(credentialId: string, stored: number): number {
    let latest = stored
    for (const kind of this.#credentials) latest = Math.max(latest, kind.latestOf(credentialId))
    return latest
  }

  start(): void {
    this.#timer = setInterval(() => void this.#flushOnTime(), this.#deps.interval / this.#flushes).unref()
  }

  /** Writes what is due, one flush at a time. Never throws: what failed stays due. @param minUsers timestamps of fewer users wait. */
  flush(minUsers = 0): Promise<void> {
    this.#flushing ??= this.#write(minUsers).finally(() => {
      this.#flushing = null
    })
    return this.#flushing
  }

  /** Stops the timer and flushes a last time, after the current flush. Repeats it for `closing` while the store fails. */
  async close(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer)
    await this.#flushing
    await this.flush()
    for (let waited = 0; waited < this.#deps.closing && this.#isDue; waited += MIN_INTERVAL) {
      await delay(MIN_INTERVAL)
      await this.flush()
    }
  }

  get #isDue(): boolean {
    return this.#users.size > 0 || this.#credentials.some(({ isDue }) => isDue)
  }

  #flushOnTime(): Promise<void> {
    this.#flushesUntilUsers -= 1
    if (this.#flushesUntilUsers > 0) return this.flush(Number.POSITIVE_INFINITY)
    this.#flushesUntilUsers = this.#flushes
    return this.flush()
  }

  /** Flushes early in a small heap, for which the users of one interval may be too many: the cache does not bound them. */
  #flushEarly(): void {
    if (this.#users.size >= this.#flushAt && !this.#isFailing) void this.flush(this.#flushAt / 2)
  }

  #recordCredential(principal: Principal, now: number, credential: CachedCredential = principal): void {
    const isApiKey = isApiKeyPrincipal(principal)
    if (isApiKey && now - principal.storedRequestAt < this.#keyStep) return
    principal.storedRequestAt = now
    const kind = isApiKey ? this.#apiKeys : this.#sessions
    kind.add(credential)
  }

  async #write(minUsers: number): Promise<void> {
    const { userCache, store, apiKeys, adminKeys, onFailure } = this.#deps
    const startedAt = performance.now()
    for (const kind of this.#credentials) kind.flushStarted()
    const due = await this.#takeUsers(minUsers)
    const users = due ?? new Float64Array()
    const hasRows = users.length > 0 || this.#credentials.some(({ isUnwritten }) => isUnwritten)
    let from = 0
    try {
      for (; from < users.length || this.#sessions.isUnwritten; from += SLICE * 2) {
        // A copy: posting a part of an array to SQLite's writer thread clones all of it.
        const slice = users.slice(from, from + SLICE * 2)
        const write = (sessions: readonly CredentialLastRequest[]) =>
          store.recordLastRequests(slice, sessions)
        const written = await this.#sessions.writeSlice(write)
        this.#rows += slice.length / 2 + written
      }
      if (due !== null) userCache.flushSucceeded()
      await this.#writeKeys(this.#apiKeys, apiKeys)
      await this.#writeKeys(this.#adminKeys, adminKeys)
      this.#isFailing = false
    } catch (error) {
      this.#isFailing = true
      this.#failures += 1
      if (due !== null) this.#users.putBack(users.subarray(from))
      for (const kind of this.#credentials) kind.flushFailed()
      onFailure(error)
    }
    if (hasRows) this.#durations.observeSince(startedAt)
  }

  /** @returns the users in the order of the rows in the store, so that each page is written once; `null` if fewer than `min` are due. */
  async #takeUsers(min: number): Promise<UserLastRequests | null> {
    if (this.#users.size < min) return null
    if (min > 0) {
      await this.#users.merge()
      if (this.#users.size < min) return null
    }
    this.#deps.userCache.flushStarted()
    return this.#users.take()
  }

  async #writeKeys(kind: DueCredentials, store: KeyRequestStore): Promise<void> {
    while (kind.isUnwritten) {
      const written = await kind.writeSlice(keys => store.recordRequests(keys))
      this.#rows += written
    }
  }
}
