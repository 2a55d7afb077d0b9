/** Lists of users on SQLite: their indexes, and slices in between which other requests are served. */
import { setImmediate as nextRound } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { ERRORS } from '#base/errors'
import { parseSort, type UserFilter, type UserQuery } from '#core/users/listing'
import { estimateUsers, listUsers } from '#core/users/sqlite-lists'
import { Reader } from '#storage/sqlite/reader'
import { type SlicedTask, TimeSlicer } from '#storage/sqlite/time-slicer'
import { add, addUsers, NOW } from './contract/fixtures.ts'
import { connect, fileOf, open } from './sqlite-support.ts'

const NEWEST_FIRST = parseSort('-createdAt')

/** A store of many users. Only the oldest are disabled and have another name. */
const openMany = async (t: Test, many: number) => {
  const storage = await open(t)
  const people = Array.from({ length: many }, (_, index) => ({
    createdAt: NOW + index,
    ...(index < many / 2 && { firstName: 'Old', disabled: true }),
  }))
  return { storage, users: await addUsers(storage, people) }
}

/** Enabled users named old: there are none, and either direction of the search is as good. */
const LONG: UserQuery = {
  filter: { search: 'old', disabled: false },
  sort: NEWEST_FIRST,
  after: null,
  limit: 20,
}

t.test('sqlite: other requests are served between the slices of long lists and counts', async t => {
  const { storage, users } = await openMany(t, 6_000)
  let rounds = 0
  let pending = true
  const serve = async () => {
    for (; pending; rounds += 1) {
      t.equal((await storage.users.find(users[rounds]?.id ?? ''))?.id, users[rounds]?.id)
      await nextRound()
    }
  }
  const serving = serve()
  t.equal(await storage.users.count({ disabled: false }), 3_000)
  t.ok(rounds > 3, `${rounds} rounds beside a count`)
  rounds = 0
  t.strictSame(await storage.users.list(LONG), [])
  t.ok(rounds > 3, `${rounds} rounds beside a list`)
  pending = false
  await serving
})

t.test('sqlite: what a count would take long for is estimated from a sample', async t => {
  const { users } = await openMany(t, 6_000)
  const reader = new Reader(fileOf(t))
  t.teardown(() => reader.close())
  const estimate = (filter: UserFilter) => {
    const task = estimateUsers(reader, filter, 1)
    for (let slices = 1; ; slices += 1) {
      const slice = task.next()
      if (slice.done) return { total: slice.value, slices }
    }
  }
  t.strictSame(estimate({}), { total: users.length, slices: 22 })
  const { total } = estimate({ search: 'old' })
  t.ok(total > 2_700 && total < 3_300, `${total} of 3,000`)
  t.equal(estimate({ search: 'nobody' }).total, 0)
  t.equal(estimate({ search: 'old' }).total, total, 'again')
  t.equal(
    estimate({ disabled: true }).total + estimate({ disabled: false }).total,
    users.length,
    'parts of all',
  )
})

t.test('sqlite: ten concurrent tasks block the event loop no longer than one', async t => {
  let round = 0
  const rounds: number[] = []
  const turns = new TimeSlicer()
  const tasks = Array.from({ length: 10 }, function* (_, index): SlicedTask<number> {
    for (let slice = 0; slice < 5; slice += 1) {
      yield
      rounds.push(round)
    }
    return index
  })
  const results = Promise.all(tasks.map(task => turns.run(task)))
  for (; rounds.length < 50; round += 1) await nextRound()
  t.strictSame(await results, [...tasks.keys()])
  t.equal(new Set(rounds).size, 50, 'a slice of one task in each round')
})

t.test('sqlite: a page that is quick to find is returned at once', async t => {
  const { storage } = await openMany(t, 1_000)
  // The first list of a process loads the query builder.
  await storage.users.list({ ...LONG, filter: {} })
  for (const filter of [{}, { disabled: false }, { email: 'nobody@example.com' }]) {
    const users = storage.users.list({ ...LONG, filter })
    t.ok(Array.isArray(users), JSON.stringify(filter))
  }
})

/** Reads the first slices of a page, lets something happen, and reads the others. */
const interrupted = (t: Test, query: UserQuery, slices: number, happens: () => void): string[] => {
  const reader = new Reader(fileOf(t))
  t.teardown(() => reader.close())
  const task = listUsers(reader, query)
  for (let slice = 0; slice < slices; slice += 1) t.equal(task.next().done, false)
  happens()
  for (;;) {
    const slice = task.next()
    if (slice.done) return slice.value.map(({ id }) => id)
  }
}

t.test('sqlite: a user who moves in the order while a page is read appears once', async t => {
  const storage = await open(t)
  const { user } = await add(storage, { firstName: 'a' })
  await Promise.all(Array.from({ length: 200 }, () => add(storage, { firstName: 'm', disabled: true })))
  const { user: last } = await add(storage, { firstName: 'y' })
  const query = { ...LONG, filter: { disabled: false }, sort: parseSort('firstName') }
  const rename = connect(t).prepare("UPDATE users SET first_name_key = 'x' WHERE id = ?")
  t.strictSame(
    interrupted(t, query, 1, () => rename.run(user.id)),
    [user.id, last.id],
  )
})

t.test('sqlite: a user who matches by two names takes one place on the page', async t => {
  const storage = await open(t)
  const { user: oldest } = await add(storage, { lastName: 'old' })
  const { user } = await add(storage, { firstName: 'old', createdAt: NOW + 1 })
  // As many as the first two slices walk along.
  await addUsers(
    storage,
    Array.from({ length: 3_000 }, () => ({ createdAt: NOW + 2 })),
  )
  const rename = connect(t).prepare(
    "UPDATE users SET first_name_key = '', last_name_key = 'old' WHERE id = ?",
  )
  // Walked along for one slice, and searched the first names.
  const found = interrupted(t, { ...LONG, limit: 2 }, 2, () => rename.run(user.id))
  t.strictSame(found, [user.id, oldest.id])
})

t.test('sqlite: a list fails as unavailable when its connection closes', async t => {
  await openMany(t, 3_000)
  const reader = new Reader(fileOf(t))
  const list = Promise.resolve(new TimeSlicer().run(listUsers(reader, LONG)))
  reader.close()
  await t.rejects(list, { message: ERRORS.storeUnavailable.message })
})
