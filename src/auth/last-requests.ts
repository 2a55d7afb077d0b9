/**
 * The timestamp of the last request of each user (§5.1.2, DESIGN §6), session and API key: exact in memory, written in one batch a second, in slices, and
 * never set back. A stop loses none, a crash at most one second's. A failed write is repeated.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { DURATIONS, Histogram, type HistogramValue } from '../statistics/histogram.ts'
import { type CachedUser, isApiKeyPrincipal, type Principal } from './principal.ts'
import { tokenCapacity } from './token-cache.ts'
import type { UserCache } from './user-cache.ts'

export interface UserLastRequest {
  /** The number that the store assigned to the user. A write by number costs a fourth of a write by id. */
  readonly key: number
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** Of a session, or of an API key. */
export interface CredentialLastRequest {
  readonly id: string
  readonly at: number
}

export interface LastRequestStore {
  /** Raises the timestamps of users and sessions to the given ones, never lowers them. Removed ones are ignored. */
  noteLastRequests(
    users: readonly UserLastRequest[],
    sessions: readonly CredentialLastRequest[],
  ): Promise<void>
}

export interface ApiKeyRequestStore {
  /** As {@link LastRequestStore.noteLastRequests}, for API keys. */
  noteRequests(apiKeys: readonly CredentialLastRequest[]): Promise<void>
}

/** Milliseconds between two flushes. */
const INTERVAL = 1_000

/** Rows of one write: few enough that a slice blocks neither the event loop nor the writer for long. */
const SLICE = 5_000

/** A session's timestamp is written once it is newer by this fraction of the idle time, or by this many milliseconds. */
const IDLE_FRACTION = 1 / 100
const CREDENTIAL_STEP = 60_000

export interface LastRequestsDeps {
  readonly userCache: UserCache
  readonly store: LastRequestStore
  readonly apiKeys: ApiKeyRequestStore
  /** Milliseconds after which an idle session ends. */
  readonly idle: number
  /** Milliseconds in which `close` repeats a failing flush: a stop loses nothing if the store recovers in time. */
  readonly closing: number
  /** Called when a flush failed. The next one repeats its writes. */
  readonly onFailure: (error: unknown) => void
  /** How many users may be due before a flush starts early; by default the capacity of the token cache. */
  readonly flushAt?: number
}

/** For metrics: since the start. */
export interface FlushStatistics {
  /** Written timestamps of users, sessions and API keys. */
  readonly rows: number
  readonly failures: number
  /** Seconds of each flush that had rows to write. */
  readonly durations: HistogramValue
}

export class LastRequests {
  readonly #deps: LastRequestsDeps
  readonly #credentialStep: number
  readonly #flushAt: number
  /** Whether the last flush failed. The next one then waits for the timer. */
  #isFailing = false
  /** Users whose timestamp is due. An array: a map, filled again each second, cost 3 % of a request with 10,000 active users. */
  #users: CachedUser[] = []
  /** Sessions and API keys whose timestamp is due, by their ids. */
  #credentials = new Map<string, Principal>()
  /** Those that the current flush has not written yet. */
  #writingCredentials = new Map<string, Principal>()
  #flushing: Promise<void> | null = null
  #timer: NodeJS.Timeout | null = null
  readonly #durations = new Histogram(DURATIONS)
  #rows = 0
  #failures = 0

  constructor(deps: LastRequestsDeps) {
    this.#deps = deps
    this.#credentialStep = Math.min(deps.idle * IDLE_FRACTION, CREDENTIAL_STEP)
    this.#flushAt = deps.flushAt ?? tokenCapacity()
  }

  get statistics(): FlushStatistics {
    return { rows: this.#rows, failures: this.#failures, durations: this.#durations.value }
  }

  /** Assigns two numbers if the user is already due, as for nearly every request. */
  note(principal: Principal, now: number): void {
    const { cachedUser } = principal
    // Each is compared separately: a clock that was set back, or is behind another instance's, sets no timestamp back.
    if (now > principal.lastRequestAt) principal.lastRequestAt = now
    if (now < cachedUser.lastRequestAt) return
    cachedUser.lastRequestAt = now
    if (!cachedUser.isWriteDue) {
      cachedUser.isWriteDue = true
      // The cache does not bound the users that are due: in a small heap, those of one second may be too many.
      if (this.#users.push(cachedUser) >= this.#flushAt && !this.#isFailing) void this.flush()
    }
    if (now - principal.storedRequestAt >= this.#credentialStep) {
      principal.storedRequestAt = now
      this.#credentials.set(principal.credentialId, principal)
    }
  }

  /**
   * The newest last request of a session or API key.
   * @param stored its timestamp in the store; this instance may know a later one.
   */
  latestOf(credentialId: string, stored: number): number {
    const due = this.#credentials.get(credentialId) ?? this.#writingCredentials.get(credentialId)
    return Math.max(due?.lastRequestAt ?? 0, stored)
  }

  start(): void {
    this.#timer = setInterval(() => void this.flush(), INTERVAL).unref()
  }

  /** Writes what is due, one flush at a time. Never throws: a failure is reported, and what was due stays due. */
  flush(): Promise<void> {
    this.#flushing ??= this.#write().finally(() => {
      this.#flushing = null
    })
    return this.#flushing
  }

  /** Stops the timer and flushes a last time, after the current flush. Repeats it for `closing` while the store fails. */
  async close(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer)
    await this.#flushing
    await this.flush()
    for (let waited = 0; waited < this.#deps.closing && this.#users.length > 0; waited += INTERVAL) {
      await delay(INTERVAL)
      await this.flush()
    }
  }

  async #write(): Promise<void> {
    const { userCache, store, apiKeys: apiKeyStore, onFailure } = this.#deps
    const users = this.#users
    const credentials = this.#credentials
    this.#writingCredentials = credentials
    this.#users = []
    this.#credentials = new Map()
    userCache.flushStarted()
    const hasRows = users.length > 0 || credentials.size > 0
    const startedAt = performance.now()
    let from = 0
    try {
      for (; from < users.length || credentials.size > 0; from += SLICE) {
        const userSlice = users.slice(from, from + SLICE)
        const slice = [...credentials.values().take(SLICE)]
        const sessions = slice.filter(principal => !isApiKeyPrincipal(principal))
        const apiKeys = slice.filter(isApiKeyPrincipal)
        for (const cachedUser of userSlice) cachedUser.isWriteDue = false
        await store.noteLastRequests(userSlice.map(userLastRequest), sessions.map(credentialLastRequest))
        if (apiKeys.length > 0) await apiKeyStore.noteRequests(apiKeys.map(credentialLastRequest))
        for (const { credentialId } of slice) credentials.delete(credentialId)
        this.#rows += userSlice.length + slice.length
      }
      userCache.flushSucceeded()
      this.#isFailing = false
    } catch (error) {
      this.#isFailing = true
      this.#failures += 1
      this.#keep(users.slice(from))
      onFailure(error)
    }
    if (hasRows) this.#durations.observeSince(startedAt)
  }

  /** Makes the writes of a failed flush due again, each user once. */
  #keep(users: readonly CachedUser[]): void {
    const latest = new Map<number, CachedUser>()
    for (const cachedUser of [...users, ...this.#users]) {
      const other = latest.get(cachedUser.key)
      if (other === undefined || other.lastRequestAt <= cachedUser.lastRequestAt)
        latest.set(cachedUser.key, cachedUser)
    }
    for (const cachedUser of latest.values()) cachedUser.isWriteDue = true
    this.#users = [...latest.values()]
    for (const [id, principal] of this.#writingCredentials) {
      if (!this.#credentials.has(id)) this.#credentials.set(id, principal)
    }
    this.#writingCredentials = new Map()
  }
}

const userLastRequest = ({ key, lastRequestAt }: CachedUser): UserLastRequest => ({ key, at: lastRequestAt })

const credentialLastRequest = ({ credentialId, lastRequestAt }: Principal): CredentialLastRequest => ({
  id: credentialId,
  at: lastRequestAt,
})
