/** A table with `owner: null`: its rows belong to no user (docs/design.md, "Features"). */
import { join } from 'node:path'
import Database from 'better-sqlite3'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { openPostgresStorage } from '#core/store/postgres'
import { openSqliteStorage } from '#core/store/sqlite'
import { firstIdAt, newId, type ServicesOf } from '#feature/declaration'
import { add } from '../storage/contract/fixtures.ts'
import { asAdmin, manualClock, signUp, temporaryFolder } from '../support/build.ts'
import { copyHere } from '../support/copy-runs.ts'
import { onEveryEngine } from '../support/engines.ts'
import { createDatabase, query } from '../support/postgres.ts'
import { until } from '../support/until.ts'
import { pooledWriter } from '../support/writer-pool.ts'
import { announcements } from './announcements.ts'

const servicesOf = (app: FastifyInstance) =>
  app.services as typeof app.services & ServicesOf<[typeof announcements]>

await onEveryEngine(t, async (t, { build }) => {
  t.test('rows that belong to no user stay when users are deleted', async t => {
    const app = await build(t, { features: [announcements] })
    const store = servicesOf(app).announcements
    const { id } = await signUp(app)
    await store.announce('a', 'open', Date.now())
    const removed = await app.inject({ method: 'DELETE', url: `/admin/users/${id}`, headers: asAdmin })
    t.equal(removed.statusCode, 204)
    t.strictSame(await store.listAnnouncements(), ['open'])
  })

  t.test('rows that belong to no user are cleaned up', async t => {
    const clock = manualClock()
    const cleanUpPace = { startWithin: 1, interval: 20, pause: 1 }
    const app = await build(t, { features: [announcements], clock: clock.now, cleanUpPace })
    const store = servicesOf(app).announcements
    await store.announce('a', 'old', clock.now())
    await store.announce('b', 'new', clock.now() + 1)
    clock.advance(1_001)
    const texts = await until(
      async () => store.listAnnouncements(),
      ({ length }) => length < 2,
      10_000,
    )
    t.strictSame(texts, ['new'])
  })

  t.test('rows are cleaned up by the time that their ids begin with', async t => {
    const cleanUp = { column: 'id', after: 1_000, firstAt: firstIdAt }
    const tables = { announcements: { owner: null, key: 'id', cleanUp } }
    const clock = manualClock()
    const cleanUpPace = { startWithin: 1, interval: 20, pause: 1 }
    const app = await build(t, { features: [{ ...announcements, tables }], clock: clock.now, cleanUpPace })
    const store = servicesOf(app).announcements
    await store.announce(newId(clock.now()), 'old', 0)
    await store.announce(newId(clock.now() + 1), 'new', 0)
    clock.advance(1_001)
    const texts = await until(
      async () => store.listAnnouncements(),
      ({ length }) => length < 2,
      10_000,
    )
    t.strictSame(texts, ['new'])
  })
})

t.test('copy: rows that belong to no user are all copied, and repeated like others', async t => {
  const features = [announcements]
  const file = join(temporaryFolder(t), 'test.db')
  const url = await createDatabase(t)
  const source = await openSqliteStorage(file, features, pooledWriter)
  t.teardown(() => source.close())
  const target = await openPostgresStorage(url, 2, features)
  t.teardown(() => target.close())
  const db = new Database(file)
  t.teardown(() => db.close())
  const execute = (text: string, ...values: readonly unknown[]) => db.prepare(text).run(...values)
  const run = async () => (await copyHere(file, url, features)).tables.announcements

  // The user is left out of the copy, which concerns no row.
  const { user } = await add(source)
  await add(target, { email: user.email })
  execute(
    `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 4001)
     INSERT INTO announcements SELECT 'a' || n, 'text ' || n, 1 FROM n`,
  )
  t.strictSame(await run(), { added: 4_001, changed: 0, deleted: 0, conflicts: 0 })
  const count = 'SELECT count(*)::int AS rows FROM announcements'
  t.strictSame(await query(url, count), [{ rows: 4_001 }])
  const versions = () => query(url, 'SELECT xmin, xmax, ctid FROM announcements')
  const before = await versions()
  t.strictSame(await run(), { added: 0, changed: 0, deleted: 0, conflicts: 0 })
  t.strictSame(await versions(), before, 'no row is written or locked by the second run')

  execute(`DELETE FROM announcements WHERE id = 'a1'`)
  execute(`UPDATE announcements SET text = 'later here ' || id, updated_at = 3 WHERE id IN ('a2', 'a3')`)
  execute(`INSERT INTO announcements VALUES ('new', 'new here', 1), ('same text', 'new there', 1)`)
  await query(url, `DELETE FROM announcements WHERE id = 'a2'`)
  await query(
    url,
    `UPDATE announcements SET text = 'later there ' || id, updated_at = 2 WHERE id IN ('a3', 'a4')`,
  )
  await query(url, `INSERT INTO announcements VALUES ('there', 'new there', 1)`)
  t.strictSame(await run(), { added: 1, changed: 1, deleted: 1, conflicts: 1 })
  const found = await query(
    url,
    `SELECT id, text FROM announcements WHERE updated_at > 1 OR id IN ('a1', 'a2') OR id LIKE '%e%' ORDER BY id`,
  )
  t.strictSame(found, [
    { id: 'a3', text: 'later here a3' },
    { id: 'a4', text: 'later there a4' },
    { id: 'new', text: 'new here' },
    { id: 'there', text: 'new there' },
  ])
})
