/** Partitions the events of PostgreSQL by month, see `postgres/event-months.ts`. */
import { firstIdAt } from '#base/ids'
import { addMonth, nextMonth, partitionBefore, partitionOf } from '../postgres/event-months.ts'
import type { Run } from './session.ts'

/** Milliseconds for which the present table takes new events at least: its preparation takes time. */
const AHEAD = 7 * 86_400_000

const INDEXES: Readonly<Record<string, string>> = {
  by_user_id: 'user_id, id',
  by_type: 'type, id',
  by_position: 'position, id',
  by_user_id_position: 'user_id, position, id',
  by_type_position: 'type, position, id',
}

/** Any constant: the key of the lock under which an instance prepares events and migrates. */
const LOCK = 7_239_180_447

/** The start of a month that lies after all present events. */
const findBound = async (run: Run): Promise<number> => {
  const [row] = await run<{ id: string | null }>('SELECT max(id) AS id FROM events')
  const last = Number.parseInt(row?.id?.replaceAll('-', '').slice(0, 12) ?? '0', 16)
  return nextMonth(Math.max(Date.now() + AHEAD, last))
}

/** @returns the month before which a constraint has all events, by {@link prepareEvents}; `undefined` without one. */
const findConstraint = async (run: Run): Promise<number | undefined> => {
  const rows = await run<{ name: string }>(`SELECT conname AS name FROM pg_constraint
    WHERE conrelid = 'events'::regclass AND contype = 'c'`)
  return rows.map(({ name }) => partitionOf(name)?.to).find(bound => bound !== undefined)
}

/**
 * Proves by a constraint that the events of an earlier version lie before a month. The migration then attaches their table without
 * reading it, which would block reads and writes for seconds with ten million events. Here they go on.
 */
export const prepareEvents = async (run: Run): Promise<void> => {
  // Of instances that start at once, one reads. The lock is held until the connection ends, after its migration: another's migration
  // between two of these statements would take their table away.
  await run(`SELECT pg_advisory_lock(${LOCK})`)
  const [table] = await run<{ kind: string }>(`SELECT relkind AS kind FROM pg_class
    WHERE oid = to_regclass('events')`)
  if (table?.kind === 'r') {
    const bound = (await findConstraint(run)) ?? (await findBound(run))
    const name = partitionBefore(bound)
    await run(`ALTER TABLE events DROP CONSTRAINT IF EXISTS ${name}, ADD CONSTRAINT ${name}
      CHECK (id < '${firstIdAt(bound)}') NOT VALID`)
    await run(`ALTER TABLE events VALIDATE CONSTRAINT ${name}`)
  }
}

/** The table of events becomes the first partition of a new one. */
export const partitionEvents = async (run: Run): Promise<void> => {
  const bound = (await findConstraint(run)) ?? (await findBound(run))
  const earlier = partitionBefore(bound)
  await run(`ALTER TABLE events RENAME TO ${earlier}`)
  for (const index of ['pkey', ...Object.keys(INDEXES)])
    await run(`ALTER INDEX events_${index} RENAME TO ${earlier}_${index}`)
  await run(`CREATE TABLE events (LIKE ${earlier} INCLUDING DEFAULTS) PARTITION BY RANGE (id)`)
  await run('ALTER TABLE events ADD PRIMARY KEY (id)')
  for (const [index, columns] of Object.entries(INDEXES))
    await run(`CREATE INDEX events_${index} ON events (${columns})`)
  await run(`ALTER TABLE events ATTACH PARTITION ${earlier}
    FOR VALUES FROM (MINVALUE) TO ('${firstIdAt(bound)}')`)
  await run(`ALTER TABLE ${earlier} DROP CONSTRAINT IF EXISTS ${earlier}`)
  await run('CREATE TABLE events_other PARTITION OF events DEFAULT')
  for (const text of addMonth(bound)) await run(text)
}
