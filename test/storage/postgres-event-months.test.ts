/** The partitions of the audit log on PostgreSQL (docs/design.md, "Storage"). */
import pg from 'pg'
import t, { type Test } from 'tap'
import type { AuditEvent } from '#core/audit-log/event'
import { coreMigrations } from '#core/store/migrations'
import type { Storage } from '#core/store/store'
import { migrateCore } from '#storage/migrations/run'
import { nextMonth } from '#storage/postgres/event-months'
import { postgresSession } from '#storage/postgres/migrate'
import { until } from '../support/until.ts'
import { add, eventOf } from './contract/fixtures.ts'
import { ask, beginEmpty, open, urlOf } from './postgres-support.ts'

const DAY = 86_400_000
const YEAR = 365 * DAY

/** The first lock that a migration takes. */
const MIGRATION_LOCK = 3_853_314_791_062_309_107n

const WAITING_INSTANCES = `SELECT count(*)::int AS all,
    count(*) FILTER (WHERE (classid::bigint << 32) + objid::bigint = ${MIGRATION_LOCK})::int AS migrating
  FROM pg_locks JOIN pg_database ON pg_database.oid = database
  WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted`

/** The partitions, with the number of events in each. */
const partitions = async (t: Test): Promise<Record<string, number>> => {
  const rows = await ask(
    t,
    `SELECT inhrelid::regclass::text AS name, (SELECT count(*)::int FROM events WHERE tableoid = inhrelid) AS count
      FROM pg_inherits WHERE inhparent = 'events'::regclass ORDER BY 1`,
  )
  return Object.fromEntries(rows.map(({ name, count }) => [String(name), Number(count)]))
}

/** The partition that the migration creates for the present. */
const firstPartition = async (t: Test): Promise<string> =>
  Object.keys(await partitions(t)).find(name => name.startsWith('events_before_')) ?? ''

const monthName = (timestamp: number): string =>
  `events_${new Date(timestamp).toISOString().slice(0, 7).replace('-', '_')}`

const record = async (storage: Storage, events: readonly AuditEvent[]): Promise<void> => {
  for (const event of events) await storage.events.record(event)
}

const idsOf = (events: readonly { readonly id: string }[]) => events.map(({ id }) => id)

const listed = async (storage: Storage, userId: string) =>
  idsOf(await storage.events.list({ filter: { userId, type: 'user.changed' }, beforeId: null, limit: 100 }))

/** A database of the version before partitions, with events at these timestamps. */
const olderDatabase = async (t: Test, timestamps: readonly number[]): Promise<string[]> => {
  beginEmpty(t)
  const client = new pg.Client({ connectionString: await urlOf(t) })
  await client.connect()
  const older = [...coreMigrations('postgres')].filter(([name]) => name < '0013')
  await migrateCore(postgresSession(client), new Map(older))
  await client.end()
  const events = timestamps.map(at => eventOf('ann', at))
  const rows = events.map(({ id, at }) => `('${id}', ${at}, 'user.changed', 'user', 'ann')`)
  await ask(t, `INSERT INTO events (id, at, type, actor_type, user_id) VALUES ${rows}`)
  return idsOf(events)
}

t.test('postgres: events of an earlier version stay, also those of a clock ahead', async t => {
  const now = Date.now()
  const ids = await olderDatabase(t, [now - 2 * YEAR, now - DAY, now + YEAR])
  // An interrupted start left it.
  await ask(t, `ALTER TABLE events ADD CONSTRAINT events_before_2099_01 CHECK (id < 'b') NOT VALID`)
  const [storage] = await Promise.all([open(t), open(t)])
  t.strictSame(await listed(storage, 'ann'), ids.toReversed())
  t.strictSame(await partitions(t), { events_2099_01: 0, events_before_2099_01: 3, events_other: 0 })
  const { user } = await add(storage)
  await record(storage, [eventOf(user.id, now)])
  t.equal((await listed(storage, user.id)).length, 2)
  const { events } = await storage.events.follow({ filter: {}, after: null, limit: 100 })
  t.strictSame(idsOf(events).slice(0, 3), ids, 'in the same order')
})

t.test('postgres: of instances that start at once, one prepares events and migrates', async t => {
  await olderDatabase(t, [Date.now()])
  const client = new pg.Client({ connectionString: await urlOf(t) })
  await client.connect()
  t.teardown(() => client.end())
  await client.query(`SELECT pg_advisory_lock(${MIGRATION_LOCK})`)
  const opened = Promise.all([open(t), open(t)])
  const found = await until(
    () => ask(t, WAITING_INSTANCES),
    ([row]) => row?.all === 2,
    10_000,
  )
  t.strictSame(found, [{ all: 2, migrating: 1 }])
  await client.query('SELECT pg_advisory_unlock_all()')
  await opened
})

t.test('postgres: the first partition ends after every event that there is', async t => {
  const now = Date.now()
  await olderDatabase(t, [now, now + 3 * YEAR])
  await open(t)
  const end = nextMonth(now + 3 * YEAR)
  t.strictSame(Object.keys(await partitions(t)), [
    monthName(end),
    monthName(end).replace('events_', 'events_before_'),
    'events_other',
  ])
})

t.test('postgres: months are added before they begin, once, and dropped when they are old', async t => {
  const [storage, other] = await Promise.all([open(t), open(t)])
  const first = await firstPartition(t)
  const { user } = await add(storage)
  const march = Date.UTC(2031, 2, 31, 23, 59)
  for (let round = 0; round < 2; round += 1)
    await Promise.all([storage, other].map(store => store.cleanUp.rotateEvents(march, 20 * YEAR)))
  t.strictSame(
    Object.keys(await partitions(t)).slice(1, 3),
    ['events_2031_03', 'events_2031_04'],
    'with the partitions of the migration',
  )
  const inMarch = eventOf(user.id, march)
  const inApril = eventOf(user.id, Date.UTC(2031, 3))
  const inAugust = eventOf(user.id, Date.UTC(2031, 7, 1))
  await record(storage, [inMarch, inApril, inAugust])
  t.match(await partitions(t), { events_2031_03: 1, events_2031_04: 1, events_other: 1 })

  await storage.cleanUp.rotateEvents(Date.UTC(2031, 7, 2), 20 * YEAR)
  const later = await partitions(t)
  t.match(later, { events_2031_09: 0, events_other: 1 })
  t.notHas(later, { events_2031_08: 0 }, 'events that were written without a partition are not moved')
  t.strictSame((await listed(storage, user.id)).slice(0, 3), idsOf([inAugust, inApril, inMarch]))

  const inMay = Date.UTC(2032, 4, 10)
  t.equal(await storage.cleanUp.rotateEvents(inMay, 400 * DAY), Date.UTC(2031, 3), 'rows of whole months')
  t.notHas(await partitions(t), { [first]: 0 })
  t.strictSame(await listed(storage, user.id), idsOf([inAugust, inApril]), 'April has not ended so long ago')
  t.equal(await storage.cleanUp.rotateEvents(inMay, 30 * DAY), inMay - 30 * DAY, 'rows at their exact age')
  t.strictSame(Object.keys(await partitions(t)), ['events_2032_05', 'events_2032_06', 'events_other'])
  const { events } = await storage.events.follow({ filter: { userId: user.id }, after: null, limit: 100 })
  t.strictSame(idsOf(events), [inAugust.id], 'until it is removed as a row')
})

t.test('postgres: a month that cannot be dropped now is dropped later', async t => {
  const storage = await open(t)
  const first = await firstPartition(t)
  const { user } = await add(storage)
  const client = new pg.Client({ connectionString: await urlOf(t) })
  await client.connect()
  const inTenYears = Date.now() + 10 * YEAR
  try {
    await client.query('BEGIN; SELECT FROM events')
    await t.rejects(storage.cleanUp.rotateEvents(inTenYears, YEAR), 'a long transaction reads events')
    await record(storage, [eventOf(user.id, inTenYears)])
    await client.query('COMMIT')
  } finally {
    await client.end()
  }
  t.has(await partitions(t), { [first]: 1 })
  await storage.cleanUp.rotateEvents(inTenYears, YEAR)
  t.notHas(await partitions(t), { [first]: 1 })
  t.equal((await listed(storage, user.id)).length, 1)
})
