/**
 * Keeps the history of metrics for the plots: each process adds what it has counted since the last time, once a minute and when it stops. So
 * sums are right over processes and restarts; a process that is killed loses a minute. A clock that is set back adds to former rows.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { KeptValue } from '#feature/declaration'
import type { ConsoleDeps } from './definitions.ts'
import type { Count, HistoryValues, Resolution, Span } from './stored-history.ts'

/** Milliseconds. */
export const MINUTE = 60_000
export const HOUR = 3_600_000
export const DAY = 86_400_000

/** Milliseconds of a row, and for how long it is kept. Each range of the plots has rows that are few enough to read at once. */
const ROWS: Readonly<Record<Resolution, readonly [length: number, kept: number]>> = {
  minute: [MINUTE, DAY],
  'quarter-hour': [15 * MINUTE, DAY],
  hour: [HOUR, 90 * DAY],
  day: [DAY, 90 * DAY],
}

const spansAt = (now: number): readonly Span[] =>
  (Object.keys(ROWS) as Resolution[]).map(resolution => {
    const [length, kept] = ROWS[resolution]
    const beginsAt = Math.floor(now / length) * length
    return { resolution, beginsAt, expiresAt: beginsAt + length + kept }
  })

const nameOf = ({ metric, labels }: KeptValue): string => (labels === '' ? metric : `${metric}{${labels}}`)

const countOf = ({ value }: KeptValue): Count => (typeof value === 'number' ? value : value.counts)

const subtract = (count: Count, former: Count | undefined): Count => {
  if (typeof count === 'number') return count - (typeof former === 'number' ? former : 0)
  const counts = typeof former === 'object' ? former : []
  return count.map((each, bucket) => each - (counts[bucket] ?? 0))
}

const isZero = (count: Count): boolean =>
  typeof count === 'number' ? count === 0 : count.every(each => each === 0)

/** Minutes between two estimates of active users, which are expensive. */
const ACTIVE_USERS_EVERY = 5

/** The scope of a key that sees the gauges of users. The API needs it for counts too. */
export const USERS_SCOPE = 'users:read'

/** Names of gauges, by the span in milliseconds. */
export const ACTIVE_USERS = {
  'active users{span="hour"}': HOUR,
  'active users{span="day"}': DAY,
  'active users{span="30 days"}': 30 * DAY,
}

export const ALL_USERS = 'users'

/**
 * Estimates of users that do not contradict each other: a longer span has at least as many as a shorter one, and at most all users. The
 * engines count few matches and estimate many, so a shorter span can have the better number.
 * @param active from the shortest span to the longest.
 */
export const consistentEstimates = (all: number, active: readonly number[]): readonly number[] => {
  let least = 0
  return active.map(each => {
    least = Math.min(all, Math.max(least, each))
    return least
  })
}

export class HistoryRecorder {
  readonly #deps: ConsoleDeps
  /** The counts that are in the store already. */
  #written: Readonly<Record<string, Count>> = {}

  constructor(deps: ConsoleDeps) {
    this.#deps = deps
  }

  /** Until the signal is aborted, and then once more. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps
    for (let minutes = 0; !signal.aborted; minutes += 1) {
      // Soon after the start, and then late in each minute, so that a row has the minute that it names.
      const wait = minutes === 0 ? 1_000 : MINUTE - ((clock() + 1_000) % MINUTE)
      await sleep(wait, undefined, { ref: false, signal }).catch(() => undefined)
      if (signal.aborted) break
      await this.#add(minutes % ACTIVE_USERS_EVERY === 0 ? await this.#users() : {})
    }
    // Also where the signal was aborted during a write, which does not have what was counted since.
    await this.#add({})
  }

  /** What is not written is written with the next row. */
  async #add(gauges: HistoryValues['gauges']): Promise<void> {
    const { store, readKeptMetrics, clock, logger } = this.#deps
    try {
      const values = await readKeptMetrics()
      const counts: Record<string, Count> = {}
      const added: Record<string, Count> = {}
      const current: Record<string, number> = { ...gauges }
      for (const value of values) {
        const name = nameOf(value)
        if (value.isGauge) current[name] = Number(value.value)
        else {
          counts[name] = countOf(value)
          const difference = subtract(counts[name], this.#written[name])
          if (!isZero(difference)) added[name] = difference
        }
      }
      if (Object.keys(added).length + Object.keys(current).length === 0) return
      await store.addHistory(spansAt(clock()), { counts: added, gauges: current })
      this.#written = counts
    } catch (err) {
      logger.warn({ err }, 'the history of metrics could not be written, the next row includes it')
    }
  }

  async #users(): Promise<Record<string, number>> {
    const { users, clock } = this.#deps
    const now = clock()
    const all = await users.estimate({})
    const active: number[] = []
    for (const span of Object.values(ACTIVE_USERS))
      active.push(await users.estimate({ lastRequestAfter: now - span }))
    const names = Object.keys(ACTIVE_USERS)
    const ordered = consistentEstimates(all, active)
    return {
      [ALL_USERS]: all,
      ...Object.fromEntries(names.map((name, index) => [name, ordered[index] ?? 0])),
    }
  }
}
