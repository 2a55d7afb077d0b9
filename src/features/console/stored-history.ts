/** The history of metrics in the store: one row for each minute and quarter of an hour of a day, and for each hour and day of 90 days. */
import { firstRow, type Query, query, type Steps } from '#storage/operations/operation'
import { invalidatesNothing, type Write } from '#storage/operations/write'

/** A count, or the counts of a histogram's buckets. */
export type Count = number | readonly number[]

/** The values of one span of time. Names are those of metrics with their labels, such as `gatehouse_sign_ups_total{outcome="succeeded"}`. */
export interface HistoryValues {
  readonly counts: Readonly<Record<string, Count>>
  readonly gauges: Readonly<Record<string, number>>
}

export type Resolution = 'minute' | 'quarter-hour' | 'hour' | 'day'

/** Times are milliseconds since the epoch. */
export interface ConsoleHistoryTable {
  /** The resolution and the beginning. */
  id: string
  resolution: string
  begins_at: number
  expires_at: number
  /** `HistoryValues` as JSON. */
  data: string
}

export interface HistoryRow {
  readonly beginsAt: number
  readonly values: HistoryValues
}

export interface Span {
  readonly resolution: Resolution
  readonly beginsAt: number
  readonly expiresAt: number
}

const addCounts = (one: Count | undefined, other: Count): Count => {
  if (typeof other === 'number') return (typeof one === 'number' ? one : 0) + other
  const former = typeof one === 'object' ? one : []
  return other.map((count, bucket) => count + (former[bucket] ?? 0))
}

/** The counts of both, and the greater gauges. */
export const addValues = (one: HistoryValues, other: HistoryValues): HistoryValues => {
  const counts: Record<string, Count> = { ...one.counts }
  for (const [name, count] of Object.entries(other.counts)) counts[name] = addCounts(counts[name], count)
  const gauges: Record<string, number> = { ...one.gauges }
  for (const [name, value] of Object.entries(other.gauges))
    gauges[name] = Math.max(gauges[name] ?? value, value)
  return { counts, gauges }
}

export const NO_VALUES: HistoryValues = { counts: {}, gauges: {} }

/** Adds what one process has counted to the rows of these spans. Processes that do so at the same time wait for each other. */
function* addHistory(spans: readonly Span[], values: HistoryValues): Steps<Write<void>> {
  for (const { resolution, beginsAt, expiresAt } of spans) {
    const id = `${resolution} ${beginsAt}`
    yield {
      text: `INSERT INTO console_history (id, resolution, begins_at, expires_at, data) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (id) DO NOTHING`,
      values: [id, resolution, beginsAt, expiresAt, JSON.stringify(NO_VALUES)],
    }
    const found = yield* firstRow<{ data: string }>({
      text: ({ forUpdate }) => `SELECT data FROM console_history WHERE id = $1 ${forUpdate}`,
      values: [id],
    })
    const stored = found === undefined ? NO_VALUES : (JSON.parse(found.data) as HistoryValues)
    yield {
      text: 'UPDATE console_history SET data = $2 WHERE id = $1',
      values: [id, JSON.stringify(addValues(stored, values))],
    }
  }
  return invalidatesNothing(undefined)
}

/** The rows since a time, in milliseconds, oldest first. */
const readHistory = (resolution: Resolution, from: number): Query<readonly HistoryRow[]> =>
  query(
    {
      name: 'console-history',
      text: `SELECT begins_at AS "beginsAt", data FROM console_history
        WHERE resolution = $1 AND begins_at >= $2 ORDER BY begins_at`,
      values: [resolution, from],
    },
    (found: readonly { beginsAt: number; data: string }[]) =>
      found.map(({ beginsAt, data }) => ({ beginsAt, values: JSON.parse(data) as HistoryValues })),
  )

export const historyOperations = { addHistory }

export const historyReads = { readHistory }
