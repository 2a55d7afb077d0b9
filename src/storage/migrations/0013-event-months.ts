/** Partitions the events of PostgreSQL by month, see `postgres/event-months.ts`. */
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { firstIdAt } from '#base/ids'
import { addMonth, nextMonth, partitionBefore, partitionOf } from '../postgres/event-months.ts'
import type { SchemaDialect } from './schema-dialect.ts'

/** Milliseconds for which the present table takes new events at least: its preparation takes time. */
const AHEAD = 7 * 86_400_000

const INDEXES: Readonly<Record<string, string>> = {
  by_user_id: 'user_id, id',
  by_type: 'type, id',
  by_position: 'position, id',
  by_user_id_position: 'user_id, position, id',
  by_type_position: 'type, position, id',
}

/** Any constant: the key of the lock under which events are prepared. */
const LOCK = 7_239_180_447

/** The start of a month that lies after all present events. */
const findBound = async (db: Kysely<unknown>): Promise<number> => {
  const { rows } = await sql<{ id: string | null }>`SELECT max(id) AS id FROM events`.execute(db)
  const last = Number.parseInt(rows[0]?.id?.replaceAll('-', '').slice(0, 12) ?? '0', 16)
  return nextMonth(Math.max(Date.now() + AHEAD, last))
}

/** @returns the month before which a constraint has all events, by {@link prepareEventMonths}; `undefined` without one. */
const findConstraint = async (db: Kysely<unknown>): Promise<number | undefined> => {
  const { rows } = await sql<{ name: string }>`SELECT conname AS name FROM pg_constraint
    WHERE conrelid = 'events'::regclass AND contype = 'c'`.execute(db)
  return rows.map(({ name }) => partitionOf(name)?.to).find(bound => bound !== undefined)
}

/**
 * Proves by a constraint that the events of an earlier version lie before a month. The migration then attaches their table without
 * reading it, which would block reads and writes for seconds with ten million events. Here they go on.
 */
export const prepareEventMonths = (db: Kysely<unknown>): Promise<void> =>
  db.connection().execute(async connection => {
    const execute = (text: string) => sql.raw(text).execute(connection)
    // Of instances that start at once, one reads.
    await execute(`SELECT pg_advisory_lock(${LOCK})`)
    const { rows } = await sql<{ kind: string }>`SELECT relkind AS kind FROM pg_class
      WHERE oid = to_regclass('events')`.execute(connection)
    if (rows[0]?.kind === 'r') {
      const bound = (await findConstraint(connection)) ?? (await findBound(connection))
      const name = partitionBefore(bound)
      await execute(`ALTER TABLE events DROP CONSTRAINT IF EXISTS ${name}, ADD CONSTRAINT ${name}
        CHECK (id < '${firstIdAt(bound)}') NOT VALID`)
      await execute(`ALTER TABLE events VALIDATE CONSTRAINT ${name}`)
    }
    await execute(`SELECT pg_advisory_unlock(${LOCK})`)
  })

export const eventMonths = ({ engine }: SchemaDialect): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    if (engine === 'sqlite') return
    const execute = (text: string) => sql.raw(text).execute(db)
    const bound = (await findConstraint(db)) ?? (await findBound(db))
    const earlier = partitionBefore(bound)
    await execute(`ALTER TABLE events RENAME TO ${earlier}`)
    for (const index of ['pkey', ...Object.keys(INDEXES)])
      await execute(`ALTER INDEX events_${index} RENAME TO ${earlier}_${index}`)
    await execute(`CREATE TABLE events (LIKE ${earlier} INCLUDING DEFAULTS) PARTITION BY RANGE (id)`)
    await execute('ALTER TABLE events ADD PRIMARY KEY (id)')
    for (const [index, columns] of Object.entries(INDEXES))
      await execute(`CREATE INDEX events_${index} ON events (${columns})`)
    await execute(`ALTER TABLE events ATTACH PARTITION ${earlier}
      FOR VALUES FROM (MINVALUE) TO ('${firstIdAt(bound)}')`)
    await execute(`ALTER TABLE ${earlier} DROP CONSTRAINT IF EXISTS ${earlier}`)
    await execute('CREATE TABLE events_other PARTITION OF events DEFAULT')
    for (const text of addMonth(bound)) await execute(text)
  },
})
