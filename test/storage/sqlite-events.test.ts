/** The order of the audit log on SQLite: positions in the order of commits, and the indexes of its lists. */
import t, { type Test } from 'tap'
import type { AuditEvent } from '#core/audit-log/event'
import { eventsQuery } from '#core/audit-log/event-queries'
import {
  positionRangeQuery,
  SELECT_FIRST_POSITION,
  SELECT_LAST_POSITION,
} from '#core/audit-log/sqlite-events'
import { coreMigrations } from '#core/store/migrations'
import type { DatabaseSchema } from '#core/store/tables'
import { migrateCore } from '#storage/migrations/run'
import { createDatabaseFile, openDatabase } from '#storage/sqlite/database'
import { sqliteSession } from '#storage/sqlite/migrate'
import { queryBuilder } from '#storage/sqlite/query-builder'
import { EVENT_FILTERS } from './contract/event-filters.ts'
import { add, eventOf, NOW, removeOld } from './contract/fixtures.ts'
import { connect, fileOf, open } from './sqlite-support.ts'

const queries = queryBuilder<DatabaseSchema>()

/** The schema before events had positions, with data. */
const openBefore = async (t: Test) => {
  const file = fileOf(t)
  createDatabaseFile(file)
  const connection = openDatabase(file, 5_000)
  const before = [...coreMigrations('sqlite')].filter(([name]) => name < '0003')
  await migrateCore(sqliteSession(connection), new Map(before))
  return connection
}

t.test('sqlite: a file without positions is migrated with its events, in the order of ids', async t => {
  const connection = await openBefore(t)
  const events = Array.from({ length: 300 }, (_, index) => eventOf(`user ${index % 7}`, NOW + index))
  const insert = connection.prepare(
    `INSERT INTO events (id, at, type, actor_type, actor_id, user_id, ip, details)
     VALUES (?, ?, ?, 'user', ?, ?, '192.0.2.1', NULL)`,
  )
  const shuffled = events.toSorted((one, other) => (one.id.slice(-6) < other.id.slice(-6) ? -1 : 1))
  for (const { id, at, type, userId } of shuffled) insert.run(id, at, type, userId, userId)
  connection.close()
  const storage = await open(t)
  t.strictSame((await storage.events.follow({ filter: {}, after: null, limit: 1_000 })).events, events)
  t.strictSame(await storage.events.list({ filter: {}, beforeId: null, limit: 1_000 }), events.toReversed())
  const next = await storage.events.end()
  const { user } = await add(storage)
  const { events: later } = await storage.events.follow({ filter: {}, after: next, limit: 10 })
  t.strictSame(
    later.map(({ userId }) => userId),
    [user.id],
  )
  t.equal(connect(t).pragma('integrity_check', { simple: true }), 'ok')
})

t.test('sqlite: a position is never reused, even when all events are removed', async t => {
  const storage = await open(t)
  await add(storage)
  const after = await storage.events.end()
  await removeOld(storage, 'events', NOW + 1_000, 100)
  t.strictSame(await storage.events.list({ filter: {}, beforeId: null, limit: 10 }), [])
  t.strictSame(await storage.events.follow({ filter: {}, after, limit: 10 }), {
    events: [],
    positions: [],
    next: after,
  })
  const { user } = await add(storage)
  const { events } = await storage.events.follow({ filter: {}, after, limit: 10 })
  t.strictSame(
    events.map(({ userId }) => userId),
    [user.id],
  )
})

t.test('sqlite: events are read from an index in each order, at any page, without a sort', async t => {
  const storage = await open(t)
  await Promise.all(Array.from({ length: 50 }, () => add(storage)))
  const db = connect(t)
  const planOf = ({ sql, parameters }: { sql: string; parameters: readonly unknown[] }): string =>
    (db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters) as { detail: string }[])
      .map(({ detail }) => detail)
      .join('; ')
  const id: AuditEvent['id'] = eventOf('x').id
  for (const filter of EVENT_FILTERS) {
    const { userId, type } = filter
    const title = JSON.stringify(filter)
    const column = userId === undefined ? 'type' : 'user_id'
    const plain = userId === undefined && type === undefined
    for (const after of [0, 20]) {
      const plan = planOf(positionRangeQuery({ filter, after, upTo: 40, limit: 20 }).compile())
      const reads = plain
        ? /^SEARCH events USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)$/
        : /^SEARCH events USING INDEX events_by_(user_id|type)_position \((user_id|type)=\? AND rowid>\?/
      t.match(plan, reads, `${title}, as the log grows`)
    }
    if (userId !== undefined && type !== undefined) continue
    for (const beforeId of [null, id]) {
      const plan = planOf(
        eventsQuery(queries.selectFrom('events'), { filter, beforeId, limit: 20 }).compile(),
      )
      const index = plain ? '(sqlite_autoindex_events_1|events_by_\\w+)' : `events_by_${column}`
      t.match(plan, new RegExp(`^(SCAN|SEARCH) events USING INDEX ${index}( |$)`), `${title}, newest first`)
      t.notMatch(plan, 'TEMP', title)
    }
  }
  for (const sql of [SELECT_FIRST_POSITION, SELECT_LAST_POSITION])
    t.notMatch(planOf({ sql, parameters: [] }), /TEMP/)
})
