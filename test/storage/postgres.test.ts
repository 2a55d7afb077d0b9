/** PostgreSQL storage: the contract of every engine, then properties of the database. */
import { setImmediate } from 'node:timers/promises'
import pg from 'pg'
import t from 'tap'
import type { MaybePromise } from '#base/maybe-promise'
import { schemaOf } from '#core/store/migrations'
import { openPostgresStorage } from '#core/store/postgres'
import type { Storage } from '#core/store/store'
import type { SortField } from '#core/users/listing'
import { SORT_COLUMNS } from '#core/users/listing-queries'
import { countStatement, pageStatement } from '#core/users/postgres-lists'
import { allFeatures } from '#features/built-in'
import { migrate } from '#storage/postgres/migrate'
import { until } from '../support/until.ts'
import { add, eventOf, forEach, NOW, sessionOf, userRequests, verifiedBy } from './contract/fixtures.ts'
import { storageContract } from './contract.ts'
import { ask, beginEmpty, explain, open, urlOf } from './postgres-support.ts'
import { worksBesidePreviousRelease } from './previous-release.ts'

/** Milliseconds until what the server does later counts as missing. */
const DEADLINE = 20_000

await storageContract(t, 'postgres', open)

t.test('postgres: instances that start concurrently on an empty database all succeed', async t => {
  beginEmpty(t)
  const storages = await Promise.all(Array.from({ length: 4 }, () => open(t)))
  for (const storage of storages) t.equal(await storage.users.count({}), 0)
})

t.test('postgres: a repeated migration changes nothing', async t => {
  const storage = await open(t)
  await add(storage)
  const content = async () => [
    await ask(
      t,
      'SELECT * FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY 3, 4',
    ),
    await ask(t, 'SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema() ORDER BY 1'),
    await ask(t, 'SELECT * FROM users'),
  ]
  const before = await content()
  await migrate(await urlOf(t), schemaOf())
  t.strictSame(await content(), before)
})

t.test('postgres: an instance of the previous release writes to the migrated database', async t => {
  await worksBesidePreviousRelease(t, await open(t), text => ask(t, text))
})

t.test('postgres: a database that acknowledges unsynced writes is rejected', async t => {
  const url = new URL(await urlOf(t))
  url.searchParams.set('options', '-c synchronous_commit=off')
  await t.rejects(openPostgresStorage(url.href, 1), { message: /synchronous_commit is off/ })
})

t.test('postgres: a missing database is named in the error', async t => {
  const url = new URL(await urlOf(t))
  url.port = '1'
  await t.rejects(openPostgresStorage(url.href, 1), { message: /^the database: .*ECONNREFUSED/ })
})

t.test('postgres: a page is read from its index in order, wherever it starts', async t => {
  const storage = await open(t)
  const [first] = await Promise.all(Array.from({ length: 300 }, () => add(storage)))
  const id = first?.user.id ?? ''
  for (const [field, column] of Object.entries(SORT_COLUMNS)) {
    for (const descending of [false, true]) {
      for (const after of [null, { key: field === 'createdAt' ? NOW : 'ada', id }]) {
        const sort = { field: field as SortField, descending }
        const plan = await explain(t, pageStatement({ filter: {}, sort, after, limit: 20 }))
        const order = `${field}, ${descending ? 'down' : 'up'}, ${after === null ? 'first page' : 'further page'}`
        t.match(plan, `users_by_${column}`, order)
        t.notMatch(plan, /Sort/, `${order}: nothing is sorted`)
        if (after !== null) t.match(plan, /Index Cond: \(ROW/, `${order}: begins where the last page ended`)
      }
    }
  }
})

t.test('postgres: searches and lookups have an index for each column', async t => {
  const storage = await open(t)
  await Promise.all(Array.from({ length: 300 }, () => add(storage)))
  const search = await explain(t, countStatement({ search: 'zoe', searchEmail: true }))
  for (const index of ['users_by_first_name_key', 'users_by_last_name_key', 'users_by_email']) {
    t.match(search, `Bitmap Index Scan on ${index}`)
  }
  t.match(await explain(t, countStatement({ email: 'ada@example.com' })), 'users_by_email')
  t.match(await explain(t, countStatement({ disabled: true })), 'users_disabled')
})

t.test('postgres: a sign-in concurrent with disabling leaves no session', async t => {
  const first = await open(t)
  const second = await open(t)
  for (let round = 0; round < 50; round += 1) {
    const { user } = await add(first)
    const session = sessionOf(user.id)
    await Promise.all([
      first.sessions.open(session, verifiedBy(user.passwordHash), eventOf(session.userId)),
      second.users.update(user.id, { disabled: true }, eventOf(user.id, NOW), {
        revokeSessions: true,
        invalidateTokens: false,
        credentialId: null,
        versions: null,
      }),
    ])
    t.equal(await first.sessions.find(session.id), undefined)
  }
})

t.test('postgres: instances that note the same users in any order do not deadlock', async t => {
  const storages = [await open(t), await open(t)]
  const [one] = storages
  if (one === undefined) throw new Error('no storage')
  const added = await Promise.all(Array.from({ length: 400 }, () => add(one)))
  const users = added.map(({ userKey }) => ({ key: userKey, at: NOW + 1 }))
  const sessions = added.map(({ session }) => ({ id: session.id, at: NOW + 1 }))
  for (let round = 0; round < 20; round += 1) {
    await t.resolves(
      Promise.all([
        storages[0]?.lastRequests.recordLastRequests(userRequests(users), sessions),
        storages[1]?.lastRequests.recordLastRequests(userRequests(users.toReversed()), sessions.toReversed()),
      ]),
    )
  }
})

type Lookup = (storage: Storage, id: string, onStart: () => void) => MaybePromise<unknown>

const LOOKUPS: Readonly<Record<string, Lookup>> = {
  sessions: (storage, id, onStart) => storage.sessions.find(id, onStart),
  api_keys: (storage, digest, onStart) => storage.apiKeys.find(digest, onStart),
  admin_keys: (storage, digest, onStart) => storage.adminKeys.find(digest, onStart),
}

t.test('postgres: a lookup that waits for a connection has not started yet', async t => {
  const storage = await openPostgresStorage(await urlOf(t), 1, allFeatures())
  t.teardown(() => storage.close())
  const { session } = await add(storage)
  for (const [table, lookup] of Object.entries(LOOKUPS)) {
    const client = new pg.Client({ connectionString: await urlOf(t) })
    await client.connect()
    await client.query(`BEGIN; LOCK TABLE ${table}`)
    let lookups = 0
    const find = () =>
      lookup(storage, session.id, () => {
        lookups += 1
      })
    const finds = [find(), find()]
    while (lookups === 0) await setImmediate()
    await client.query('SELECT 1')
    t.equal(lookups, 1, `${table}: the first one has the only connection`)
    await client.query('COMMIT')
    await client.end()
    const expected = table === 'sessions' ? { session: { id: session.id } } : undefined
    for (const found of await Promise.all(finds)) t.match(found, expected)
    t.equal(lookups, 2)
  }
})

t.test('postgres: a batch of last requests changes no index (HOT)', async t => {
  const storage = await open(t)
  const added = await forEach(Array.from({ length: 200 }), () => add(storage))
  // The first adds the rows. The second finds free space on the same pages, whether or not the server has vacuumed.
  for (const at of [NOW, NOW + 1]) {
    const users = added.map(({ userKey }) => ({ key: userKey, at }))
    await storage.lastRequests.recordLastRequests(userRequests(users), [])
  }
  await storage.close()
  // The server adds the counts of a connection when its process ends, shortly after the connection.
  const [counts] = await until(
    () =>
      ask(
        t,
        `SELECT n_tup_upd::int AS updates, n_tup_hot_upd::int AS hot FROM pg_stat_user_tables
         WHERE relname = 'last_requests'`,
      ),
    ([found]) => Number(found?.updates) >= 200,
    DEADLINE,
  )
  t.match(counts, { updates: 200 })
  t.ok(Number(counts?.hot) > 180, `${counts?.hot} of 200 updates`)
})
