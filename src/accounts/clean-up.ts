import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { OpenRateLimit, RateLimit } from '../rate-limits/limits.ts'
import { LONGEST_LIFETIME } from './email-token.ts'

/** What nobody can use any more, and how a store lets go of it: a slice at a time, so that no other write waits for long. */

/** Timestamps in milliseconds since the epoch. */
export interface ExpiredSessions {
  /** Gone is what had its absolute end by then, */
  readonly endedBy: number
  /** and what the store has no request of since. */
  readonly idleSince: number
}

/** Each call is one slice and removes `limit` rows at most. Several callers at once, of any instance, do each other no harm. */
export interface CleanUpStore {
  /**
   * Looks at the next sessions in the order of their ids: no index leads to their ends, which every request would pay for.
   * A session that somebody is just writing is left for another time.
   * @param after where to go on, `''` at the beginning.
   * @returns where to go on, `''` after the last.
   */
  removeSessions(expired: ExpiredSessions, after: string, limit: number): Promise<string>
  /** @param before tokens made at this timestamp and later stay, whatever their end. @returns whether there may be more. */
  removeEmailTokens(before: number, limit: number): Promise<boolean>
  /** @param before events of this timestamp and later stay. @returns whether there may be more. */
  removeEvents(before: number, limit: number): Promise<boolean>
  /** Like {@link removeSessions}, over what is counted for rate limits; nothing where no table has it. */
  removeRateLimits(expiredBy: number, after: string, limit: number): Promise<string>
}

/**
 * Removes what nobody can use any more: a pass over everything now and then, in small slices with pauses between them, so
 * that it takes a few percent of a writer's time at most. No event tells of it, and nobody has to hear of it: an expired
 * session identifies nobody, remembered or not, as `Authenticator` holds each request to its ends (`#alive`).
 */

/** Milliseconds. */
export interface CleanUpPace {
  /** The first pass begins within this time, at random: instances that start together, or again and again, do not all begin. */
  readonly startWithin: number
  /** From one pass to the next. */
  readonly interval: number
  /** After each slice. */
  readonly pause: number
}

const PACE: CleanUpPace = { startWithin: 60_000, interval: 600_000, pause: 50 }

/** Rows removed at a time: of 300,000 sessions, a slice held SQLite's writer for 0.7 ms (99 %: 1.6), and its commit for 1 more. */
const SLICE = 100

/**
 * Milliseconds that everything is kept past its end at least. The store may know of a session's last request a minute late,
 * and a second more until it is written (`last-requests.ts`); clocks of instances differ; a store may have taken no writes
 * for a while. An instance that is cut off from a shared store for longer accepts no requests, so none are missing then.
 */
const MARGIN = 3_600_000

/** Of several instances one makes the pass. Its turn ends a little before the next pass, so that it is never in its own way. */
const TURN = 0.9

export interface CleanUpDeps {
  readonly store: CleanUpStore
  /** What instances take turns by. */
  readonly openRateLimit: OpenRateLimit
  /** Milliseconds after which an idle session ends. */
  readonly idle: number
  /** Milliseconds that events are kept. */
  readonly eventsKept: number
  readonly clock: () => number
  /** Told once of a pass that failed; the next one goes on where it ended. */
  readonly onFailure: (error: unknown) => void
  /** In place of that of production. */
  readonly pace?: CleanUpPace | undefined
}

export class CleanUp {
  readonly #parts: CleanUpDeps
  readonly #pace: CleanUpPace
  readonly #turns: RateLimit
  readonly #closing = new AbortController()
  #running: Promise<void> = Promise.resolve()
  /** How far the walks have come, also when a pass has failed. */
  #afterSession = ''
  #afterRateLimit = ''

  constructor(parts: CleanUpDeps) {
    this.#parts = parts
    this.#pace = parts.pace ?? PACE
    const seconds = Math.max(1, Math.floor((this.#pace.interval * TURN) / 1_000))
    this.#turns = parts.openRateLimit({ name: 'expired-rows', points: 1, seconds })
  }

  start(): void {
    this.#running = this.#run()
  }

  /** Waits for the slice under way. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    await this.#wait(randomInt(this.#pace.startWithin))
    while (!this.#closing.signal.aborted) {
      await this.#pass().catch(this.#parts.onFailure)
      await this.#wait(this.#pace.interval)
    }
  }

  async #pass(): Promise<void> {
    if (!(await this.#turns.consume('pass')).allowed) return
    const failures: unknown[] = []
    // One kind that cannot be removed does not keep the others.
    for (const removeSlice of this.#kinds()) {
      try {
        await this.#removeAll(removeSlice)
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }

  async #removeAll(removeSlice: () => Promise<boolean>): Promise<void> {
    for (let more = true; more && !this.#closing.signal.aborted; ) {
      more = await removeSlice()
      await this.#wait(this.#pace.pause)
    }
  }

  /** For each kind of row what removes a slice of it and tells whether there may be more. */
  #kinds(): readonly (() => Promise<boolean>)[] {
    const { store, idle, eventsKept, clock } = this.#parts
    const now = clock()
    const endedBy = now - MARGIN
    return [
      async () => {
        const expired = { endedBy, idleSince: endedBy - idle }
        this.#afterSession = await store.removeSessions(expired, this.#afterSession, SLICE)
        return this.#afterSession !== ''
      },
      () => store.removeEmailTokens(endedBy - LONGEST_LIFETIME, SLICE),
      () => store.removeEvents(now - eventsKept, SLICE),
      async () => {
        this.#afterRateLimit = await store.removeRateLimits(endedBy, this.#afterRateLimit, SLICE)
        return this.#afterRateLimit !== ''
      },
    ]
  }

  /** Keeps no process alive, and ends at once when everything does. */
  #wait(milliseconds: number): Promise<void> {
    return sleep(milliseconds, undefined, { ref: false, signal: this.#closing.signal }).catch(() => undefined)
  }
}
