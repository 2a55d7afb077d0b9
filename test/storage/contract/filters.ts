/** Contract: lookups by ids and timestamp filters, alone and combined, against a model with random combinations. */
import { deepEqual } from 'node:assert/strict'
import fc from 'fast-check'
import { v7 as uuidv7 } from 'uuid'
import type { Storage } from '#core/store/store'
import { MAX_IDS, parseSort, SORTS, type Sort, sortKey, type UserFilter } from '#core/users/listing'
import type { User } from '#core/users/user'
import { inShortRun } from '../../support/run.ts'
import { ALL, add, asStored, forEach, NOW, type Part, userRequests } from './fixtures.ts'
import { inOrder, matches, readAll } from './list-model.ts'

const USERS = 3_000
const RUNS = inShortRun(40, 150)

/** Timestamps of creation: far fewer than users, so that several share one. */
const SPAN = 700

const timestamp = fc.integer({ min: NOW, max: NOW + SPAN })
const person = fc.record({
  firstName: fc.option(fc.constantFrom('ada', 'Adam', 'bea', 'Zo\u00eb')),
  lastName: fc.option(fc.constantFrom('a', 'b', '\u{1f600}')),
  disabled: fc.integer({ min: 0, max: 9 }).map(number => number === 0),
  createdAt: timestamp,
  roles: fc
    .integer({ min: 0, max: 99 })
    .map(number => [...(number % 2 ? ['common'] : []), ...(number < 3 ? ['rare'] : [])]),
})
/** Last requests: none, any, or before the user's creation, as with a clock that is behind. */
const request = fc.option(fc.integer({ min: NOW - 20, max: NOW + 2 * SPAN }))

const addPeople = async (storage: Storage, seed: number): Promise<User[]> => {
  const options = { numRuns: USERS, seed }
  const requests = fc.sample(request, options)
  const added = await forEach(fc.sample(person, options), fields => add(storage, fields))
  const timestamps = added.flatMap(({ userKey }, index) => {
    const at = requests[index] ?? null
    return at === null ? [] : [{ key: userKey, at }]
  })
  await storage.lastRequests.recordLastRequests(userRequests(timestamps), [])
  return added.map(({ user }, index) => asStored(user, requests[index] ?? null))
}

const creationBound = fc.integer({ min: NOW - 5, max: NOW + SPAN + 5 })
const requestBound = fc.integer({ min: NOW - 25, max: NOW + 2 * SPAN + 5 })

/** The probability of a filter, in tenths. */
const inTen = <T>(times: number, value: fc.Arbitrary<T>) =>
  fc.oneof({ weight: times, arbitrary: value }, { weight: 10 - times, arbitrary: fc.constant(undefined) })

/** Any combination of filters; `undefined` is not filtered by. */
const filterOf = (users: readonly User[]): fc.Arbitrary<UserFilter> => {
  const someone = fc.constantFrom(...users)
  const id = fc.oneof({ weight: 9, arbitrary: someone.map(user => user.id) }, fc.constant(uuidv7()))
  const wanted = fc.record({
    ids: inTen(2, fc.uniqueArray(id, { minLength: 1, maxLength: MAX_IDS, size: 'max' })),
    search: inTen(2, fc.constantFrom('a', 'AD', 'zo\u00cb', 'user', 'nobody')),
    searchEmail: fc.constantFrom(true, undefined),
    email: inTen(
      1,
      someone.map(user => user.email),
    ),
    disabled: inTen(3, fc.boolean()),
    role: inTen(4, fc.constantFrom('common', 'rare', 'nobody')),
    createdAfter: inTen(4, creationBound),
    createdBefore: inTen(4, creationBound),
    lastRequestAfter: inTen(3, requestBound),
    lastRequestBefore: inTen(3, requestBound),
  })
  return wanted.map(
    fields =>
      Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as UserFilter,
  )
}

export const filters: Part = async (t, open) => {
  t.test('timestamp bounds are exclusive, and users without a request match only "before"', async t => {
    const storage = await open(t)
    const added = await forEach([0, 1, 2, 3], index => add(storage, { createdAt: NOW + index }))
    const [early, , late] = added
    const at = NOW + 10
    await storage.lastRequests.recordLastRequests(
      userRequests(
        [early, late].flatMap((each, index) =>
          each === undefined ? [] : [{ key: each.userKey, at: at + index }],
        ),
      ),
      [],
    )
    const found = async (filter: UserFilter) => {
      const users = await storage.users.list({ ...ALL, filter })
      t.equal(await storage.users.count(filter), users.length)
      return users.map(({ id }) => added.findIndex(({ user }) => user.id === id))
    }
    t.strictSame(await found({ createdAfter: NOW + 1 }), [2, 3])
    t.strictSame(await found({ createdBefore: NOW + 1 }), [0])
    t.strictSame(await found({ createdAfter: NOW, createdBefore: NOW + 3 }), [1, 2])
    t.strictSame(await found({ createdAfter: NOW + 1, createdBefore: NOW + 2 }), [])
    t.strictSame(await found({ createdAfter: NOW + 3, createdBefore: NOW }), [])
    t.strictSame(await found({ lastRequestAfter: at }), [2])
    t.strictSame(await found({ lastRequestAfter: 0 }), [0, 2])
    t.strictSame(await found({ lastRequestBefore: at }), [1, 3])
    t.strictSame(await found({ lastRequestBefore: at + 1 }), [0, 1, 3])
    t.strictSame(await found({ lastRequestBefore: NOW + 2 }), [1], 'no user who came later')
    t.strictSame(await found({ lastRequestAfter: 0, lastRequestBefore: at + 1 }), [0])
  })

  t.test('random combinations agree with the model, in every order and page size', async t => {
    const seed = Date.now()
    const storage = await open(t)
    const users = await addPeople(storage, seed)
    const byId = new Map(users.map(user => [user.id, user]))
    const limits = fc.constantFrom(2, 20, 101, 1_000)
    const matching: number[] = []
    const agrees = async (filter: UserFilter, sort: Sort, limit: number, from: number) => {
      const expected = inOrder(users.filter(matches(filter)), sort)
      matching.push(expected.length)
      deepEqual(await storage.users.count(filter), expected.length, 'count')
      if (limit > 20 || expected.length < 100) {
        deepEqual(await readAll(storage, sort, limit, filter), expected)
      }
      const start = byId.get(expected[from % expected.length] ?? '')
      if (start === undefined) return
      const { field, descending } = parseSort(sort)
      const after = { key: sortKey(start, field), id: start.id }
      const page = await storage.users.list({ filter, sort: { field, descending }, after, limit })
      const following = expected.slice((from % expected.length) + 1).slice(0, limit)
      deepEqual(
        page,
        following.map(id => byId.get(id)),
      )
    }
    await fc.assert(
      fc.asyncProperty(filterOf(users), fc.constantFrom(...SORTS), limits, fc.nat(USERS), agrees),
      { numRuns: RUNS, seed },
    )
    const some = matching.filter(many => many > 0).length
    t.ok(some > RUNS / 4, `${some} of ${RUNS} filters have matches`)
  })
}
