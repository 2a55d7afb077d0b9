/**
 * The moment of each user's last request (§5.1.2, DESIGN §6): exact in memory, written in one batch a second in slices,
 * never backwards. A stop loses none, a crash at most one second's, and a store that fails is tried again.
 */
import type { Identity, KnownUser } from './identity.ts'
import type { Session } from './session.ts'

/** Milliseconds between two flushes. */
const INTERVAL = 1_000

/** Rows handed to the store at a time: few enough that neither the event loop nor the writer is held up for long by one slice. */
const SLICE = 5_000

/** A session's moment serves its idle end alone, so it is written only when it is older by this part of the idle time. */
const IDLE_PART = 100

/** Milliseconds since the epoch. */
export interface UserMoment {
  /** The store's own number of the user: every active user is written each second, by number at a fourth of the cost. */
  readonly key: number
  readonly at: number
}

export interface SessionMoment {
  readonly id: string
  readonly at: number
}

export interface LastRequestStore {
  /** Raises the moments of users and sessions to the given ones, never lowers them; who is gone is passed over. */
  noteLastRequests(users: readonly UserMoment[], sessions: readonly SessionMoment[]): Promise<void>
}

export interface LastRequestsParts {
  readonly store: LastRequestStore
  /** Milliseconds after which an idle session ends. */
  readonly idle: number
  /** Told of a flush that failed; what it held is kept for the next. */
  readonly onFailure: (error: unknown) => void
}

export class LastRequests {
  readonly #parts: LastRequestsParts
  readonly #sessionStep: number
  #users = new Map<string, KnownUser>()
  #sessions = new Map<string, Identity>()
  /** What the flush under way has not written yet. */
  #writing = new Map<string, KnownUser>()
  #writingSessions = new Map<string, Identity>()
  #flushing: Promise<void> | null = null
  #timer: NodeJS.Timeout | null = null

  constructor(parts: LastRequestsParts) {
    this.#parts = parts
    this.#sessionStep = parts.idle / IDLE_PART
  }

  /** Two stores of a number for a user who is noted already, as nearly every request's is. */
  note(identity: Identity, now: number): void {
    const { known } = identity
    // A clock that was set back moves nothing back.
    if (now < identity.lastRequestAt || now < known.lastRequestAt) return
    identity.lastRequestAt = now
    known.lastRequestAt = now
    if (!known.noted) {
      known.noted = true
      this.#users.set(known.user.id, known)
    }
    if (now - identity.storedRequestAt >= this.#sessionStep) {
      identity.storedRequestAt = now
      this.#sessions.set(identity.sessionId, identity)
    }
  }

  /** The last request of a user as far as this instance knows, given what the store has. */
  latest(userId: string, stored: number | null): number | null {
    const noted = (this.#users.get(userId) ?? this.#writing.get(userId))?.lastRequestAt
    if (noted === undefined) return stored
    return stored === null ? noted : Math.max(noted, stored)
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

  /** Ends the flushes with a last one that also has what came during the one under way. */
  async close(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer)
    await this.#flushing
    await this.flush()
  }

  async #write(): Promise<void> {
    const sessions = this.#sessions
    this.#writing = this.#users
    this.#writingSessions = sessions
    this.#users = new Map()
    this.#sessions = new Map()
    try {
      while (this.#writing.size > 0 || sessions.size > 0) {
        const userSlice = [...this.#writing.values().take(SLICE)]
        const sessionSlice = [...sessions.values().take(SLICE)]
        for (const known of userSlice) known.noted = false
        await this.#parts.store.noteLastRequests(userSlice.map(userMoment), sessionSlice.map(sessionMoment))
        for (const known of userSlice) this.#writing.delete(known.user.id)
        for (const identity of sessionSlice) sessions.delete(identity.sessionId)
      }
    } catch (error) {
      this.#keep()
      this.#parts.onFailure(error)
    }
  }

  /** Puts back what a failed flush held, except where a later request has noted the same again. */
  #keep(): void {
    for (const [id, known] of this.#writing) {
      known.noted = true
      if (!this.#users.has(id)) this.#users.set(id, known)
    }
    for (const [id, identity] of this.#writingSessions) {
      if (!this.#sessions.has(id)) this.#sessions.set(id, identity)
    }
    this.#writing = new Map()
    this.#writingSessions = new Map()
  }
}

const userMoment = ({ key, lastRequestAt }: KnownUser): UserMoment => ({ key, at: lastRequestAt })

const sessionMoment = ({ sessionId, lastRequestAt }: Identity): SessionMoment => ({
  id: sessionId,
  at: lastRequestAt,
})
