import { setTimeout as delay } from 'node:timers/promises'
import type { CachedUser, Principal } from './principal.ts'
import type { Session } from './session.ts'
import { tokenCapacity } from './token-cache.ts'
import type { UserCache } from './user-cache.ts'

export interface UserMoment {
  /** The store's own number of the user: every active user is written each second, by number at a fourth of the cost. */
  readonly key: number
  /** Milliseconds since the epoch. */
  readonly at: number
}

export interface SessionMoment {
  readonly id: string
  readonly at: number
}

export interface LastRequestStore {
  /** Raises the timestamps of users and sessions to the given ones, never lowers them; who is gone is passed over. */
  noteLastRequests(users: readonly UserMoment[], sessions: readonly SessionMoment[]): Promise<void>
}

/**
 * The timestamp of each user's last request (§5.1.2, DESIGN §6): exact in memory, written in one batch a second in slices,
 * never backwards. A stop loses none, a crash at most one second's, and a store that fails is tried again.
 */

/** Milliseconds between two flushes. */
const INTERVAL = 1_000

/** Rows handed to the store at a time: few enough that neither the event loop nor the writer is held up for long by one slice. */
const SLICE = 5_000

/** How often the last flush is tried: a stop loses nothing that a store is back for in time. */
const LAST_ATTEMPTS = 5

/** A session's timestamp is written when it is older by this part of the idle time, or by as many milliseconds. */
const IDLE_FRACTION = 1 / 100
const SESSION_STEP = 60_000

export interface LastRequestsDeps {
  readonly userCache: UserCache
  readonly store: LastRequestStore
  /** Milliseconds after which an idle session ends. */
  readonly idle: number
  /** Told of a flush that failed; what it held is kept for the next. */
  readonly onFailure: (error: unknown) => void
  /** How many users may be due before a flush begins early; by default as many as tokens are remembered. */
  readonly flushAt?: number
}

export class LastRequests {
  readonly #parts: LastRequestsDeps
  readonly #sessionStep: number
  readonly #flushAt: number
  /** Whether the last flush failed: the next one is the timer's. */
  #failing = false
  /** Whose timestamp is due. A list: to fill a map anew each second took 3 % of a request more, with 10,000 users in turn. */
  #users: CachedUser[] = []
  #sessions = new Map<string, Principal>()
  /** What the flush under way has not written yet. */
  #writingSessions = new Map<string, Principal>()
  #flushing: Promise<void> | null = null
  #timer: NodeJS.Timeout | null = null

  constructor(parts: LastRequestsDeps) {
    this.#parts = parts
    this.#sessionStep = Math.min(parts.idle * IDLE_FRACTION, SESSION_STEP)
    this.#flushAt = parts.flushAt ?? tokenCapacity()
  }

  /** Two stores of a number for a user who is noted already, as nearly every request's is. */
  note(principal: Principal, now: number): void {
    const { cachedUser } = principal
    // Each by itself: a clock that was set back, or is behind another instance's, moves nothing back.
    if (now > principal.lastRequestAt) principal.lastRequestAt = now
    if (now < cachedUser.lastRequestAt) return
    cachedUser.lastRequestAt = now
    if (!cachedUser.noted) {
      cachedUser.noted = true
      // Users that wait for the flush are not bounded by the cache: in a small heap a second of them may be too many.
      if (this.#users.push(cachedUser) >= this.#flushAt && !this.#failing) void this.flush()
    }
    if (now - principal.storedRequestAt >= this.#sessionStep) {
      principal.storedRequestAt = now
      this.#sessions.set(principal.sessionId, principal)
    }
  }

  /** The last request of a session as far as this instance knows, given what the store has. */
  latestOfSession({ id, lastRequestAt }: Session): number {
    const noted = this.#sessions.get(id) ?? this.#writingSessions.get(id)
    return Math.max(noted?.lastRequestAt ?? 0, lastRequestAt)
  }

  start(): void {
    this.#timer = setInterval(() => void this.flush(), INTERVAL).unref()
  }

  /** Writes what is due. One flush at a time; a failure is reported, kept and never thrown. */
  flush(): Promise<void> {
    this.#flushing ??= this.#write().finally(() => {
      this.#flushing = null
    })
    return this.#flushing
  }

  /** Ends the flushes with a last one that also has what came during the one under way; a store that is away is waited for. */
  async close(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer)
    await this.#flushing
    await this.flush()
    for (let attempt = 1; attempt < LAST_ATTEMPTS && this.#users.length > 0; attempt += 1) {
      await delay(INTERVAL)
      await this.flush()
    }
  }

  async #write(): Promise<void> {
    const { userCache, store, onFailure } = this.#parts
    const users = this.#users
    const sessions = this.#sessions
    this.#writingSessions = sessions
    this.#users = []
    this.#sessions = new Map()
    userCache.flushBegins()
    let from = 0
    try {
      for (; from < users.length || sessions.size > 0; from += SLICE) {
        const userSlice = users.slice(from, from + SLICE)
        const sessionSlice = [...sessions.values().take(SLICE)]
        for (const cachedUser of userSlice) cachedUser.noted = false
        await store.noteLastRequests(userSlice.map(userMoment), sessionSlice.map(sessionMoment))
        for (const principal of sessionSlice) sessions.delete(principal.sessionId)
      }
      userCache.flushSucceeded()
      this.#failing = false
    } catch (error) {
      this.#failing = true
      this.#keep(users.slice(from))
      onFailure(error)
    }
  }

  /** Puts back what a failed flush held: a user once, however often they were noted meanwhile. */
  #keep(users: readonly CachedUser[]): void {
    const latest = new Map<number, CachedUser>()
    for (const cachedUser of [...users, ...this.#users]) {
      const other = latest.get(cachedUser.key)
      if (other === undefined || other.lastRequestAt <= cachedUser.lastRequestAt)
        latest.set(cachedUser.key, cachedUser)
    }
    for (const cachedUser of latest.values()) cachedUser.noted = true
    this.#users = [...latest.values()]
    for (const [id, principal] of this.#writingSessions) {
      if (!this.#sessions.has(id)) this.#sessions.set(id, principal)
    }
    this.#writingSessions = new Map()
  }
}

const userMoment = ({ key, lastRequestAt }: CachedUser): UserMoment => ({ key, at: lastRequestAt })

const sessionMoment = ({ sessionId, lastRequestAt }: Principal): SessionMoment => ({
  id: sessionId,
  at: lastRequestAt,
})
