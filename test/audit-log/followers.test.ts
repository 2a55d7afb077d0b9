/**
 * GET /admin/events?sort=at: a consumer sees every event once, and the events of a user in order, despite concurrent writes.
 */
import { setImmediate } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import pg from 'pg'
import t, { type Test } from 'tap'
import { call } from '../support/account-routes.ts'
import {
  type AuditLine,
  allEvents,
  createUser,
  deleteUser,
  getEvents,
  impersonate,
  UNKNOWN_ID,
} from '../support/admin-routes.ts'
import { asAdmin, bearer, manualClock, signUp, updateUser } from '../support/build.ts'
import { onEveryEngine } from '../support/engines.ts'
import { errorsAt } from '../support/error-response.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { createDatabase } from '../support/postgres.ts'
import { inShortRun } from '../support/run.ts'
import { until } from '../support/until.ts'

interface Page {
  readonly results: readonly AuditLine[]
  readonly nextCursor: string
}

type Query = Record<string, string | number>

const pageAt = async (app: FastifyInstance, query: Query, cursor: string): Promise<Page> => {
  const response = await getEvents(app, { sort: 'at', ...query, ...(cursor !== '' && { cursor }) })
  if (response.statusCode !== 200) throw new Error(`${response.statusCode}: ${response.body}`)
  return response.json()
}

/** Reads from a cursor until a page is empty, as a consumer does. */
const readOn = async (app: FastifyInstance, query: Query = {}, from = '') => {
  const events: AuditLine[] = []
  let cursor = from
  for (;;) {
    const page: Page = await pageAt(app, query, cursor)
    events.push(...page.results)
    cursor = page.nextCursor
    if (page.results.length === 0) return { events, cursor }
  }
}

const idsOf = (events: readonly AuditLine[]) => events.map(({ id }) => id)

/** Milliseconds for which transactions that began earlier may hold events back. */
const HELD_BACK = 20_000

/** All events from a cursor on, once there are `count`. */
const readAll = (app: FastifyInstance, count: number, from = '') =>
  until(
    () => readOn(app, {}, from),
    ({ events }) => events.length >= count,
    HELD_BACK,
  )

/** Follows the log. `end` returns what was seen once it is complete, or after a limit. */
const follow = (app: FastifyInstance) => {
  const seen: AuditLine[] = []
  let isDone = (_count: number) => false
  const done = (async () => {
    for (let cursor = ''; ; ) {
      const read = await readOn(app, { limit: 10 }, cursor)
      seen.push(...read.events)
      cursor = read.cursor
      if (isDone(seen.length)) return
      await setImmediate()
    }
  })()
  return async (): Promise<readonly AuditLine[]> => {
    const total = (await allEvents(app)).length
    const deadline = Date.now() + HELD_BACK
    isDone = count => count >= total || Date.now() > deadline
    await done
    return seen
  }
}

/** Actions on a user, and the types of their events in order. */
const LIFE = [
  'user.signed-up',
  'user.changed',
  'user.changed',
  'user.impersonated',
  'sessions.ended',
  'user.disabled',
  'user.deleted',
]

const live = async (app: FastifyInstance, other: FastifyInstance): Promise<string> => {
  const { id, token } = await signUp(app)
  await call(app, 'PUT', '/account', { firstName: 'One' }, bearer(token))
  await updateUser(other, id, { lastName: 'Two' })
  await impersonate(app, id)
  await call(other, 'DELETE', `/admin/users/${id}/sessions`, undefined, asAdmin)
  await updateUser(app, id, { disabled: true })
  await deleteUser(other, id)
  return id
}

/** Asserts that every event was seen once, and those of each user in order. */
const assertFollowed = async (t: Test, app: FastifyInstance, seen: readonly AuditLine[], users: string[]) => {
  const all = await allEvents(app)
  t.equal(seen.length, all.length, 'as many as there are')
  t.strictSame(idsOf(seen).toSorted(), idsOf(all).toSorted(), 'every event, once')
  const wrong = users.flatMap(user => {
    const types = seen.filter(({ userId }) => userId === user).map(({ type }) => type)
    return types.join() === LIFE.join() ? [] : [types]
  })
  t.strictSame(wrong, [], 'the events of each user in the order in which they happened')
}

await onEveryEngine(t, async (t, { name, build, newDatabase }) => {
  const options = { hasher: quickHashing }

  t.test('a consumer misses no event of two concurrent instances', async t => {
    const env = { DATABASE_URL: await newDatabase(t) }
    const [app, second] = [await build(t, { ...options, env }), await build(t, { ...options, env })]
    const end = follow(app)
    const users: string[] = []
    const write = async (one: FastifyInstance, other: FastifyInstance) => {
      for (let number = 0; number < inShortRun(3, 8); number += 1) users.push(await live(one, other))
    }
    await Promise.all(
      Array.from({ length: 12 }, (_, index) => (index % 2 ? write(app, second) : write(second, app))),
    )
    await assertFollowed(t, app, await end(), users)
  })

  if (name === 'postgres')
    t.test('an open transaction holds back later events, and none is missed', async t => {
      const env = { DATABASE_URL: await newDatabase(t) }
      const [app, second] = [await build(t, { ...options, env }), await build(t, { ...options, env })]
      const users = [await live(app, second)]
      const before = await readAll(app, LIFE.length)
      const client = new pg.Client({ connectionString: env.DATABASE_URL })
      await client.connect()
      t.teardown(() => client.end())
      const columns = 'id, at, type, actor_type, user_id'
      await client.query(
        `BEGIN; INSERT INTO events (${columns}) VALUES ('${UNKNOWN_ID}', 0, 'user.changed', 'system', 'open')`,
      )
      const end = follow(second)
      for (let number = 0; number < 10; number += 1) users.push(await live(app, second))
      t.strictSame((await readOn(app, {}, before.cursor)).events, [], 'what came after it waits')
      t.equal((await allEvents(app)).length, users.length * LIFE.length, 'but not in the list')
      await client.query('COMMIT')
      await assertFollowed(t, app, await end(), users)
      const { events } = await readOn(app, {}, before.cursor)
      t.equal(events[0]?.id, UNKNOWN_ID, 'the one that began first comes first')
    })

  if (name === 'postgres')
    t.test('an open transaction of another database holds back nothing', async t => {
      const app = await build(t, options)
      const client = new pg.Client({ connectionString: await createDatabase(t) })
      await client.connect()
      await client.query('BEGIN; CREATE TABLE open ()')
      const { id } = await signUp(app)
      const read = async () => (await pageAt(app, {}, '')).results
      const events = await until(read, ({ length }) => length === 1, 5_000)
      t.match(events, [{ type: 'user.signed-up', userId: id }])
      await client.end()
    })

  t.test('ascending order supports pages, filters and cursors', async t => {
    const clock = manualClock()
    const app = await build(t, { ...options, clock: clock.now })
    t.match(await pageAt(app, {}, ''), { results: [], nextCursor: /./ }, 'of an empty log too')
    const { nextCursor: start } = await pageAt(app, {}, '')
    const users: string[] = []
    const START = clock.now()
    for (let number = 0; number < 4; number += 1) {
      clock.advance(1_000)
      users.push((await createUser(app)).id)
    }
    for (let number = 0; number < 40; number += 1) {
      if (number % 3 === 0) clock.advance(1_000)
      const id = String(users[(number * 7) % users.length])
      if (number % 4 === 0) await impersonate(app, id)
      else await updateUser(app, id, { lastName: `Name ${number}` })
    }
    const all = (await allEvents(app)).toReversed()
    t.strictSame((await readAll(app, all.length)).events, all)
    t.strictSame((await readOn(app, {}, start)).events, all, 'from the cursor of the empty log on')
    for (const limit of [1, 2, 7, 43, 44, 45, 100])
      t.strictSame((await readOn(app, { limit })).events, all, `limit=${limit}`)

    const iso = (at: number) => new Date(at).toISOString()
    for (const userId of [undefined, users[0], UNKNOWN_ID])
      for (const type of [undefined, 'user.created', 'user.impersonated', 'user.deleted'])
        for (const after of [undefined, START, START + 3_000, START + 9_000, clock.now()])
          for (const before of [undefined, START + 9_000, START]) {
            const expected = all.filter(
              event =>
                (userId === undefined || event.userId === userId) &&
                (type === undefined || event.type === type) &&
                (after === undefined || Date.parse(event.at) > after) &&
                (before === undefined || Date.parse(event.at) < before),
            )
            const query = {
              ...(userId !== undefined && { userId }),
              ...(type !== undefined && { type }),
              ...(after !== undefined && { after: iso(after) }),
              ...(before !== undefined && { before: iso(before) }),
            }
            const { events, cursor } = await readOn(app, { ...query, limit: 3 })
            t.strictSame(events, expected, JSON.stringify(query))
            t.strictSame((await readOn(app, query, cursor)).events, [], 'once')
          }

    const { cursor } = await readOn(app)
    t.strictSame(
      await pageAt(app, {}, cursor),
      { results: [], nextCursor: cursor },
      'an empty page repeats it',
    )
    const rare = await readOn(app, { type: 'user.deleted', userId: String(users[1]) })
    await updateUser(app, String(users[0]), { lastName: 'Later' })
    await deleteUser(app, String(users[1]))
    const later = (await readAll(app, 2, cursor)).events
    t.strictSame(
      later.map(({ type }) => type),
      ['user.changed', 'user.deleted'],
    )
    const query = { type: 'user.deleted', userId: String(users[1]) }
    t.strictSame((await readOn(app, query, rare.cursor)).events, later.slice(1))

    const response = await getEvents(app, { sort: 'at', limit: 5, type: 'user.changed' })
    const target = /^<([^>]*)>; rel="next"$/.exec(String(response.headers.link))?.[1] ?? ''
    const linked = await app.inject({ url: target, headers: asAdmin })
    const byCursor = await pageAt(app, { limit: 5, type: 'user.changed' }, response.json().nextCursor)
    t.strictSame(linked.json(), byCursor, 'the link leads where the cursor does')
  })

  t.test('a cursor of the other sort, of another engine, or an invalid one, is a 400', async t => {
    const app = await build(t, options)
    await Promise.all([createUser(app), createUser(app)])
    await readAll(app, 2)
    const newest: string = (await getEvents(app, { limit: 1 })).json().nextCursor
    const { nextCursor } = await pageAt(app, { limit: 1 }, '')
    const reject = async (query: Query) =>
      errorsAt(t, await getEvents(app, query), 400, ['cursor'], JSON.stringify(query))
    await reject({ sort: 'at', cursor: newest })
    await reject({ sort: '-at', cursor: nextCursor })
    await reject({ cursor: nextCursor })
    const text = Buffer.from(nextCursor, 'base64url').toString()
    const other = name === 'sqlite' ? 'transactions' : 'counted'
    const encoded = (cursor: string) => Buffer.from(cursor).toString('base64url')
    for (const cursor of [
      ...['', 'x', '\0', '😀', 'null', 'A'.repeat(3_000), nextCursor.slice(1), nextCursor + nextCursor],
      encoded(text.replace(/(counted|transactions)/, other)),
      encoded(text.replace(/ \d+ /, ' 1e3 ')),
      encoded(text.replace(/ \d+ /, ' 99999999999999999999 ')),
      encoded(`${text}x`),
      encoded(`${text}\n`),
    ])
      await reject({ sort: 'at', cursor })
    errorsAt(t, await getEvents(app, { sort: 'createdAt' }), 400, ['sort'])
    errorsAt(t, await getEvents(app, { sort: '' }), 400, ['sort'])
  })
})
