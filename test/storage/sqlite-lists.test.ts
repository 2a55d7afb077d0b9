/** How the embedded engine lists users: by which indexes, and a slice at a time, so that other requests are served. */
import { setImmediate as nextRound } from 'node:timers/promises'
import type { Compilable } from 'kysely'
import t, { type Test } from 'tap'
import { ERRORS } from '../../src/errors.ts'
import { covers, inOrder } from '../../src/storage/sqlite/index-covers.ts'
import { type IndexPart, sliceEnd, usersIn } from '../../src/storage/sqlite/index-parts.ts'
import { firstOfSlice, page, usersAt } from '../../src/storage/sqlite/lists.ts'
import { queries, Reader } from '../../src/storage/sqlite/reader.ts'
import { type Task, Turns } from '../../src/storage/sqlite/turns.ts'
import { countQuery, pageQuery } from '../../src/storage/user-queries.ts'
import { parseSort, SORTS, type UserFilter, type UserQuery } from '../../src/users/user-list.ts'
import { add, NOW } from './contract/fixtures.ts'
import { connect, fileOf, open } from './sqlite-support.ts'

const NEWEST_FIRST = parseSort('-createdAt')

/** A store of many, of whom the oldest alone are disabled and called by another name. */
const openMany = async (t: Test, many: number) => {
  const storage = await open(t)
  const users = Array.from({ length: many }, (_, index) =>
    add(storage, {
      createdAt: NOW + index,
      ...(index < many / 2 && { firstName: 'Old', disabled: true }),
    }),
  )
  return { storage, users: (await Promise.all(users)).map(({ user }) => user) }
}

/** Enabled users called old: there are none, and which way to look for them does not matter. */
const LONG: UserQuery = {
  filter: { search: 'old', disabled: false },
  sort: NEWEST_FIRST,
  after: null,
  limit: 20,
}

t.test('sqlite: between the slices of long lists and counts other requests are served', async t => {
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

t.test('sqlite: ten tasks at once hold a round of the event loop no longer than one does', async t => {
  let round = 0
  const rounds: number[] = []
  const turns = new Turns()
  const tasks = Array.from({ length: 10 }, function* (_, index): Task<number> {
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

t.test('sqlite: a page that is short to find is there at once', async t => {
  const { storage } = await openMany(t, 1_000)
  for (const filter of [{}, { disabled: false }, { email: 'nobody@example.com' }]) {
    const users = storage.users.list({ ...LONG, filter })
    t.ok(Array.isArray(users), JSON.stringify(filter))
  }
})

/** Takes the first so many slices of a page, lets something happen, and takes the others. */
const interrupted = (t: Test, query: UserQuery, slices: number, happens: () => void): string[] => {
  const reader = new Reader(fileOf(t))
  t.teardown(() => reader.close())
  const task = page(reader, query)
  for (let slice = 0; slice < slices; slice += 1) t.equal(task.next().done, false)
  happens()
  for (;;) {
    const slice = task.next()
    if (slice.done) return slice.value.map(({ id }) => id)
  }
}

t.test('sqlite: a user who moves on in the order while a page is looked for is in it once', async t => {
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

t.test('sqlite: a user who is found a second time by another name takes nobody’s place', async t => {
  const storage = await open(t)
  const { user: oldest } = await add(storage, { lastName: 'old' })
  const { user } = await add(storage, { firstName: 'old', createdAt: NOW + 1 })
  // As many as are walked along in the first two slices.
  await Promise.all(Array.from({ length: 3_000 }, () => add(storage, { createdAt: NOW + 2 })))
  const rename = connect(t).prepare(
    "UPDATE users SET first_name_key = '', last_name_key = 'old' WHERE id = ?",
  )
  // Walked along a slice, and searched the first names.
  const found = interrupted(t, { ...LONG, limit: 2 }, 2, () => rename.run(user.id))
  t.strictSame(found, [user.id, oldest.id])
})

t.test('sqlite: a list that is under way when its connection closes fails as unavailable', async t => {
  await openMany(t, 3_000)
  const reader = new Reader(fileOf(t))
  const list = Promise.resolve(new Turns().run(page(reader, LONG)))
  reader.close()
  await t.rejects(list, { message: ERRORS.storeUnavailable.message })
})

t.test('sqlite: every query of a list reads one slice of one index, and sorts no more than that', async t => {
  const { storage } = await openMany(t, 100)
  await storage.ping()
  const db = connect(t)
  const planOf = ({ sql, parameters }: Pick<ReturnType<Compilable['compile']>, 'sql' | 'parameters'>) => {
    const steps = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters) as { detail: string }[]
    return steps.map(({ detail }) => detail)
  }
  const slices = (part: IndexPart): IndexPart[] => {
    const end = { key: part.column === 'created_at' ? NOW + 50 : 'p', id: 'x' }
    return [
      { ...part, upTo: end },
      { ...part, after: part.after ?? end, upTo: end },
    ]
  }
  const inIndex = (plan: readonly string[], { index }: IndexPart) =>
    plan
      .filter(step => step.includes('users '))
      .every(step => /^SEARCH users USING (COVERING )?INDEX/.test(step)) && plan[0]?.includes(` ${index} `)
  const filters: UserFilter[] = [{}, { disabled: false }, { disabled: true }].flatMap(filter => [
    filter,
    { ...filter, search: 'a' },
    { ...filter, search: 'a', searchEmail: true },
  ])
  for (const filter of filters) {
    for (const sort of SORTS.map(parseSort)) {
      for (const after of [null, { key: sort.field === 'createdAt' ? NOW : 'a', id: 'x' }]) {
        const query: UserQuery = { filter, sort, after, limit: 20 }
        const title = JSON.stringify(query)
        for (const slice of slices(inOrder(query))) {
          const plan = planOf(pageQuery(usersIn(slice), { ...query, filter: {}, after: null }).compile())
          t.ok(inIndex(plan, slice) && !plan.join().includes('TEMP'), `page ${title}`, { plan })
          const end = planOf(sliceEnd(slice, 1_000))
          t.ok(end.length === 1 && /^SEARCH users USING COVERING/.test(`${end}`), `end ${title}`, { end })
        }
        for (const slice of covers(filter).flat().flatMap(slices)) {
          const table = slice.index === 'users_by_email'
          const expected = `SEARCH users USING ${table ? '' : 'COVERING '}INDEX ${slice.index} `
          const first = planOf(firstOfSlice(slice, query).compile())
          t.ok(first[0]?.startsWith(expected) && first.length <= 2, `${slice.index} ${title}`, { first })
          const total = planOf(countQuery(usersIn(slice), {}).compile())
          t.ok(total[0]?.startsWith(expected) && total.length === 1, `count ${title}`, { total })
        }
      }
    }
  }
  for (const sort of SORTS.map(parseSort)) {
    const plan = planOf(usersAt([], { ...LONG, sort }).compile()).join()
    t.match(plan, /^SEARCH users USING INDEX sqlite_autoindex_users_1 \(id=\?\)/)
  }
  const one = planOf(
    pageQuery(queries.selectFrom('users'), { ...LONG, filter: { email: 'a', search: 'b' } }).compile(),
  )
  t.match(one[0], /^SEARCH users USING INDEX users_by_email \(email=\?\)/)
})
