/**
 * The audit log is partitioned by month (UTC), so that old events are removed by dropping a table. Ids begin with the time, so they
 * select the partition. `events_2026_12` has the events of a month, `events_before_2026_12` all before one, and `events_other` what
 * no other partition takes, so that no write fails. Migration `0013_event_months` creates the first ones.
 */
import { firstIdAt } from '#base/ids'
import { invalidatesNothing } from '../operations/write.ts'
import type { Database, Run } from './database.ts'

/** Milliseconds. Events that are kept for less are removed one by one: a month would be a large part more. */
const SHORTEST_BY_MONTH = 90 * 86_400_000

/** Statements with events wait for a change of partitions, so it does not wait long for them. */
const CHANGE = `SET LOCAL lock_timeout = '1s'; SET LOCAL statement_timeout = '10s'`

/** Any constant: the key of the lock under which partitions change. */
const LOCK = 7_239_180_446

const startOfMonth = (timestamp: number): number => {
  const date = new Date(timestamp)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth())
}

/** The start of the month after the one of a timestamp. */
export const nextMonth = (timestamp: number): number =>
  startOfMonth(startOfMonth(timestamp) + 31 * 86_400_000)

/** @param start of a month. @returns `2026_12` */
const nameOf = (start: number): string => new Date(start).toISOString().slice(0, 7).replace('-', '_')

/** The name of the partition of everything before a month. @param start of the month. */
export const partitionBefore = (start: number): string => `events_before_${nameOf(start)}`

/** Statements that add the partition of a month to `events`. They lock `events_other`, which hardly any statement reads. @param start of the month. */
export const addMonth = (start: number): readonly string[] => [
  `CREATE TABLE events_${nameOf(start)} (LIKE events INCLUDING DEFAULTS)`,
  `ALTER TABLE events ATTACH PARTITION events_${nameOf(start)}
    FOR VALUES FROM ('${firstIdAt(start)}') TO ('${firstIdAt(nextMonth(start))}')`,
]

interface Partition {
  readonly name: string
  /** Timestamps. The second is not included. */
  readonly from: number
  readonly to: number
}

/** @returns the partition of a name; `undefined` for another name, such as `events_other`. */
export const partitionOf = (name: string): Partition | undefined => {
  const [, before, year, month] = /^events_(before_)?(\d{4})_(\d{2})$/.exec(name) ?? []
  if (year === undefined) return undefined
  const start = Date.UTC(Number(year), Number(month) - 1)
  return before === undefined
    ? { name, from: start, to: nextMonth(start) }
    : { name, from: Number.NEGATIVE_INFINITY, to: start }
}

const PARTITIONS = `SELECT relname AS name FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
  WHERE inhparent = 'events'::regclass`

const partitions = async (run: Run): Promise<readonly Partition[]> =>
  (await run<{ name: string }>({ text: PARTITIONS, values: [] })).flatMap(
    ({ name }) => partitionOf(name) ?? [],
  )

/** Whether events of a month were written while it had no partition. They stay where they are: moving them would block writes. */
const hasOthers = async (run: Run, start: number): Promise<boolean> => {
  const [row] = await run<{ found: boolean }>({
    text: 'SELECT EXISTS (SELECT FROM events_other WHERE id >= $1 AND id < $2) AS found',
    values: [firstIdAt(start), firstIdAt(nextMonth(start))],
  })
  return row?.found === true
}

/**
 * What has to change: months to add, by their starts, and partitions to drop. The month in which `before` lies is dropped later, as a
 * whole: from its start on, no rows are removed.
 */
const planChanges = async (run: Run, now: number, before: number) => {
  const existing = await partitions(run)
  const added: number[] = []
  for (const start of [startOfMonth(now), nextMonth(now)])
    if (!existing.some(({ from, to }) => from <= start && start < to) && !(await hasOthers(run, start)))
      added.push(start)
  const dropped = existing.filter(({ to }) => to <= before).map(({ name }) => name)
  const month = existing.find(({ from, to }) => Number.isFinite(from) && from <= before && before < to)
  return { added, dropped, rowsBefore: month?.from ?? before }
}

/**
 * Adds the partition of the coming month, and drops those of months that ended longer ago than `kept`, in milliseconds.
 * @returns the timestamp before which rows of events are to be removed.
 */
export const rotateEvents =
  (database: Database) =>
  async (now: number, kept: number): Promise<number> => {
    const before = now - kept
    const read: Run = statement => database.read(statement)
    const { added, dropped, rowsBefore } = await planChanges(read, now, before)
    if (added.length + dropped.length > 0)
      await database.transaction(async run => {
        const execute = (text: string) => run({ text, values: [] })
        await execute(CHANGE)
        await execute(`SELECT pg_advisory_xact_lock(${LOCK})`)
        // Another instance may have made the changes.
        const { added, dropped } = await planChanges(run, now, before)
        for (const start of added) for (const text of addMonth(start)) await execute(text)
        for (const name of dropped) await execute(`DROP TABLE ${name}`)
        return invalidatesNothing(undefined)
      })
    return kept < SHORTEST_BY_MONTH ? before : rowsBefore
  }
