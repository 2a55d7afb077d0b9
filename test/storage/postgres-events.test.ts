/** The order of the audit log on PostgreSQL: positions are transaction numbers; and the indexes of its lists. */
import pg from 'pg'
import t, { type Test } from 'tap'
import { newEmailToken } from '#core/accounts/email-token'
import { LOG_START } from '#core/audit-log/listing'
import { eventsStatement, LOG_END, positionRangeStatement } from '#core/audit-log/postgres-events'
import { coreMigrations } from '#core/store/migrations'
import type { Storage } from '#core/store/store'
import { migrateCore } from '#storage/migrations/run'
import { postgresSession } from '#storage/postgres/migrate'
import { until } from '../support/until.ts'
import { EVENT_FILTERS } from './contract/event-filters.ts'
import { type Added, actingIn, add, eventOf, NOW, proofOf, resetBy, sessionOf } from './contract/fixtures.ts'
import { ask, beginEmpty, explain, open, urlOf } from './postgres-support.ts'

const ANY = { revokeSessions: false, invalidateTokens: false, credentialId: null, versions: null }

const connect = async (t: Test): Promise<pg.Client> => {
  const client = new pg.Client({ connectionString: await urlOf(t) })
  await client.connect()
  t.teardown(() => client.end())
  return client
}

const idsOf = (events: readonly { readonly id: string }[]) => events.map(({ id }) => id)

/** The users of all events after a position, once there are so many: earlier transactions may hold them back. */
const usersAfter = (storage: Storage, count: number, after = LOG_START) =>
  until(
    async () =>
      (await storage.events.follow({ filter: {}, after, limit: 1_000 })).events.map(({ userId }) => userId),
    ({ length }) => length >= count,
    20_000,
  )

t.test('postgres: a database without positions is migrated with its events, in the order of ids', async t => {
  beginEmpty(t)
  const client = await connect(t)
  const before = [...coreMigrations('postgres')].filter(([name]) => name < '0003')
  await migrateCore(postgresSession(client), new Map(before))
  const events = Array.from({ length: 300 }, (_, index) => eventOf(`user ${index % 7}`, NOW + index))
  for (const { id, at, type, userId } of events.toSorted((a, b) =>
    a.id.slice(-6) < b.id.slice(-6) ? -1 : 1,
  ))
    await client.query(
      `INSERT INTO events (id, at, type, actor_type, actor_id, user_id, ip, details)
       VALUES ($1, $2, $3, 'user', $4, $4, '192.0.2.1', NULL)`,
      [id, at, type, userId],
    )
  const storage = await open(t)
  const pages: string[] = []
  let after = LOG_START
  for (;;) {
    const { events, next } = await storage.events.follow({ filter: {}, after, limit: 7 })
    if (events.length === 0) break
    pages.push(...idsOf(events))
    after = next
  }
  t.strictSame(pages, idsOf(events))
  t.strictSame(await storage.events.list({ filter: {}, beforeId: null, limit: 1_000 }), events.toReversed())
  const { user } = await add(storage)
  t.strictSame(await usersAfter(storage, 1, after), [user.id])
})

t.test(
  'postgres: a database restored into a server with lower transaction numbers skips nothing',
  async t => {
    const storage = await open(t)
    const old = await add(storage)
    // As a restored dump has it: rows of a server with higher transaction numbers.
    await ask(t, 'UPDATE events SET position = position + 5000000000')
    t.strictSame(await usersAfter(storage, 0), [], 'hidden, were nothing done')
    const restored = await open(t)
    t.strictSame(await usersAfter(restored, 1), [old.user.id])
    const after = await restored.events.end()
    const users: string[] = []
    for (const store of [restored, storage, restored]) users.push((await add(store)).user.id)
    t.strictSame(await usersAfter(restored, 3, after), users, 'also of an instance that was there before')
    t.strictSame(await usersAfter(storage, 3, after), users)
    const shift = async () => (await ask(t, 'SELECT event_shift() AS shift'))[0]?.shift
    const first = await shift()
    t.ok(Number(first) > 4_000_000_000)
    await Promise.all([open(t), open(t)])
    t.equal(await shift(), first, 'once')
    await ask(t, 'UPDATE events SET position = position + 5000000000')
    const again = await open(t)
    const last = await again.events.end()
    const { user } = await add(again)
    t.strictSame(await usersAfter(again, 1, last), [user.id], 'and once more')
  },
)

/** Every operation that writes events of an existing user. */
const writesOf = (storage: Storage, { user, session }: Added): Record<string, () => Promise<unknown>> => {
  const event = () => eventOf(user.id, NOW + 1)
  const token = newEmailToken('verification', user.id, user.email, NOW).stored
  return {
    update: () => storage.users.update(user.id, { firstName: 'x' }, event(), ANY),
    remove: () => storage.users.remove(event(), null),
    changePassword: () =>
      storage.accounts.changePassword(
        sessionOf(user.id),
        actingIn(session, user.passwordHash),
        'new',
        event(),
      ),
    open: () => storage.sessions.open(sessionOf(user.id), null, event()),
    revoke: () => storage.sessions.revoke(session.id, event()),
    revokeAll: () => storage.sessions.revokeAll(event(), { exceptId: null, onlyEnabled: true }),
    add: () => storage.emailTokens.add(token, event(), null),
    confirmEmail: () => storage.emailTokens.confirmEmail(token, event(), proofOf(user)),
    resetPassword: () => resetBy(storage, token, 'new', sessionOf(user.id), event()),
    record: () => storage.events.record(event()),
  }
}

t.test('postgres: events of a user are in order, since a waiting transaction has no number yet', async t => {
  const storage = await open(t)
  const client = await connect(t)
  for (const name of Object.keys(writesOf(storage, await add(storage)))) {
    const added = await add(storage)
    await client.query('BEGIN')
    await client.query('SELECT 1 FROM users WHERE id = $1 FOR UPDATE', [added.user.id])
    const written = writesOf(storage, added)[name]?.()
    const waiting = async () =>
      await ask(
        t,
        `SELECT backend_xid FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock' AND application_name = 'gatehouse'`,
      )
    const found = await until(waiting, rows => rows.length === 1, 20_000)
    t.strictSame(found, [{ backend_xid: null }], name)
    await client.query('COMMIT')
    await written
  }
})

t.test('postgres: the events of concurrent changes of a user are in the order of the changes', async t => {
  const storage = await open(t)
  const { user, session } = await add(storage)
  const versions = new Map<string, number>()
  let acting = actingIn(session, user.passwordHash)
  const update = async (n: number) => {
    const event = eventOf(user.id, NOW + n)
    const changed = await storage.users.update(user.id, { firstName: `Name ${n}` }, event, ANY)
    if (typeof changed === 'object') versions.set(event.id, changed.version)
  }
  const changePassword = async (n: number) => {
    const event = eventOf(user.id, NOW + n)
    const opened = sessionOf(user.id)
    const changed = await storage.accounts.changePassword(opened, acting, `hash ${n}`, event)
    if (typeof changed !== 'object') return
    acting = actingIn(opened, `hash ${n}`)
    versions.set(event.id, changed.version)
  }
  await Promise.all(
    Array.from({ length: 12 }, async (_, worker) => {
      for (let n = 0; n < 40; n += 1) await (n % 8 === 0 ? changePassword : update)(worker * 1_000 + n)
    }),
  )
  t.ok(versions.size > 400)
  const rows = await ask(t, 'SELECT id FROM events ORDER BY position, id')
  const inOrder = rows.flatMap(({ id }) => versions.get(String(id)) ?? [])
  t.strictSame(
    inOrder,
    [...inOrder].sort((one, other) => one - other),
  )
})

/** The index of each partition on these columns: the migration names those of the first one, PostgreSQL the others. */
const indexOn = (...columns: string[]): RegExp =>
  new RegExp(
    `using events_(before_\\w+_by_${columns.slice(0, -1).join('_')}|other_${columns.join('_')}_idx) `,
  )

t.test('postgres: events are read from indexes in each order, at any page, without a sort', async t => {
  await open(t)
  // Random ids: most are in the partition without bounds.
  await ask(
    t,
    `INSERT INTO events (id, at, type, actor_type, user_id, position)
     SELECT gen_random_uuid()::text, ${NOW} + i, CASE i % 100 WHEN 0 THEN 'user.changed' ELSE 'user.signed-in' END,
       'system', 'user ' || i % 20, i FROM generate_series(1, 10000) i`,
  )
  const start = { position: 5_000, id: 'x' }
  const upTo = { position: 10_000, id: 'z' }
  for (const filter of EVENT_FILTERS) {
    const { userId, type } = filter
    const title = JSON.stringify(filter)
    // For a time range, and for both filters, the planner may choose.
    if (filter.after !== undefined || filter.before !== undefined || (userId && type)) continue
    const filtered = userId === undefined ? (type === undefined ? [] : ['type']) : ['user_id']
    for (const after of [LOG_START, start]) {
      const plan = await explain(t, positionRangeStatement({ filter, after, upTo, limit: 20 }))
      t.match(plan, indexOn(...filtered, 'position', 'id'), title)
      t.match(plan, /Index Cond: .*ROW\("?position"?, \(?id\)?/, title)
      t.notMatch(plan, /Sort {2}|Seq Scan/, title)
    }
    for (const beforeId of [null, eventOf('x').id]) {
      const plan = await explain(t, eventsStatement({ filter, beforeId, limit: 20 }))
      t.match(
        plan,
        filtered.length === 0 ? /using events_(before_\w+|other)_pkey / : indexOn(...filtered, 'id'),
        title,
      )
      t.notMatch(plan, /Sort {2}|Seq Scan/, title)
    }
  }
  const plan = await explain(t, LOG_END)
  t.match(plan, /Index Only Scan Backward using events_before_\w+_by_position /)
  t.notMatch(plan, /Sort {2}|Seq Scan on events/)
})
