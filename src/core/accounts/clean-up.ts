/**
 * Removes expired rows: every ten minutes one pass over everything, in small slices with pauses, so that the writer stays free. It writes no
 * events and invalidates no caches: `Authenticator` checks the ends of sessions.
 */
import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { firstIdAt, hexTimestamp } from '#base/ids'
import type { OpenRateLimit, RateLimit } from '#storage/rate-limit'
import { KNOWN_FOR } from '../rate-limits/known-networks.ts'
import type { CleanUpStore } from '../store/store.ts'
import { LONGEST_LIFETIME } from './email-token.ts'

/** Milliseconds. */
export interface CleanUpPace {
  /** The first pass begins within this time, at random: instances that start together do not begin together. */
  readonly startWithin: number
  readonly interval: number
  readonly pause: number
}

const PACE: CleanUpPace = { startWithin: 60_000, interval: 600_000, pause: 50 }

/** Rows of a slice: a millisecond or two of SQLite's writer. */
const SLICE = 100

/**
 * Milliseconds that rows are kept past their end: last requests reach the store up to 20 minutes late, the clocks of instances differ, and
 * the store may have refused writes for a while. An instance that cannot reach it for longer serves no requests.
 */
export const MARGIN = 3_600_000

/** The part of the interval for which an instance holds the lease: it must end before its own next pass. */
const LEASE = 0.9

export interface CleanedTable {
  readonly name: string
  readonly key: string
  readonly cleanUp?: {
    readonly column: string
    readonly after: number
    /** For text that begins with a timestamp: the lowest text of one. */
    readonly firstAt?: (timestamp: number) => string
  }
}

/** The tables of the core whose rows are removed by age, besides events. Keys that begin with the time need no other index. */
export const AGING_TABLES = [
  {
    name: 'email_tokens',
    key: 'digest',
    cleanUp: { column: 'digest', after: LONGEST_LIFETIME + MARGIN, firstAt: hexTimestamp },
  },
  { name: 'pending_changes', key: 'id', cleanUp: { column: 'expires_at', after: MARGIN } },
  { name: 'known_networks', key: 'digest', cleanUp: { column: 'signed_in_at', after: KNOWN_FOR } },
] as const satisfies readonly CleanedTable[]

export interface CleanUpDeps {
  readonly store: CleanUpStore
  /** A counter is the lease that one of several instances holds for a pass. */
  readonly openRateLimit: OpenRateLimit
  /** Rows of those without `cleanUp` stay. */
  readonly tables: readonly CleanedTable[]
  /** Milliseconds after which an idle session ends. */
  readonly idle: number
  readonly eventsKept: number
  readonly clock: () => number
  /** Called once for a failed pass. The next one continues where it ended. */
  readonly onFailure: (error: unknown) => void
  readonly pace?: CleanUpPace | undefined
}

export class CleanUp {
  readonly #deps: CleanUpDeps
  readonly #pace: CleanUpPace
  readonly #lease: RateLimit
  readonly #closing = new AbortController()
  #running: Promise<void> = Promise.resolve()
  /** Where the next slice begins, also after a failed pass. */
  #afterSession = ''
  #afterRateLimit = ''

  constructor(deps: CleanUpDeps) {
    this.#deps = deps
    this.#pace = deps.pace ?? PACE
    const seconds = Math.max(1, Math.floor((this.#pace.interval * LEASE) / 1_000))
    this.#lease = deps.openRateLimit({ name: 'clean-up', points: 1, seconds })
  }

  start(): void {
    this.#running = this.#run()
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    await this.#wait(randomInt(this.#pace.startWithin))
    while (!this.#closing.signal.aborted) {
      await this.#pass().catch(this.#deps.onFailure)
      await this.#wait(this.#pace.interval)
    }
  }

  async #pass(): Promise<void> {
    if (!(await this.#lease.consume('pass')).allowed) return
    const failures: unknown[] = []
    // A failure with one kind of row does not stop the others.
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
    for (let hasMore = true; hasMore && !this.#closing.signal.aborted; ) {
      hasMore = await removeSlice()
      await this.#wait(this.#pace.pause)
    }
  }

  /** For each kind of row, a function that removes a slice and returns whether there may be more. */
  #kinds(): readonly (() => Promise<boolean>)[] {
    const { store, tables, idle, eventsKept, clock } = this.#deps
    const now = clock()
    const endedBy = now - MARGIN
    let eventsBefore: number | undefined
    return [
      async () => {
        const expired = { endedBy, idleSince: endedBy - idle }
        this.#afterSession = await store.removeSessions(expired, this.#afterSession, SLICE)
        return this.#afterSession !== ''
      },
      ...tables.flatMap(({ cleanUp, name, key }) => {
        if (cleanUp === undefined) return []
        const { column, after, firstAt } = cleanUp
        const before = now - after
        return [() => store.removeOldRows({ name, key }, column, firstAt?.(before) ?? before, SLICE)]
      }),
      async () => {
        eventsBefore ??= await store.rotateEvents(now, eventsKept)
        return store.removeOldRows({ name: 'events', key: 'id' }, 'id', firstIdAt(eventsBefore), SLICE)
      },
      async () => {
        this.#afterRateLimit = await store.removeRateLimits(endedBy, this.#afterRateLimit, SLICE)
        return this.#afterRateLimit !== ''
      },
    ]
  }

  /** Keeps no process alive, and ends when this is closed. */
  #wait(milliseconds: number): Promise<void> {
    return sleep(milliseconds, undefined, { ref: false, signal: this.#closing.signal }).catch(() => undefined)
  }
}
