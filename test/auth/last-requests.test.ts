/** LastRequests: timestamps on their way to the store (§5.1.2; docs/design.md, "Hot path"). */

import { mock } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import {
  type CredentialLastRequest,
  type LastRequestStore,
  LastRequests,
  type LastRequestsDeps,
  type UserLastRequests,
} from '#core/auth/last-requests'
import type { CachedUser, Principal } from '#core/auth/principal'
import { sortRequests } from '#core/auth/sort-requests'
import { UserCache } from '#core/auth/user-cache'
import { NO_FACTORS } from '#core/users/factors'
import { newFields } from '#core/users/fields'
import { SHUTDOWN } from '#process/shutdown'
import { until } from '../support/until.ts'

const IDLE = 3_600_000
const START = Date.UTC(2026, 0, 1)

/** The store's keys of the users, by id. */
const keys = new Map<string, number>()

const keyOf = (id: string): number => {
  const key = keys.get(id) ?? keys.size + 1
  keys.set(id, key)
  return key
}

const cachedUser = (id: string, lastRequestAt = 0): CachedUser => ({
  key: keyOf(id),
  user: {
    id,
    email: `${id}@example.com`,
    ...newFields({}),
    emailVerified: false,
    hasPassword: true,
    disabled: false,
    factors: NO_FACTORS,
    createdAt: 0,
    updatedAt: 0,
    version: 1,
    lastRequestAt,
  },
  lastRequestAt,
  isWriteDue: false,
  current: true,
  tokens: 1,
  accountText: null,
})

const principal = (cachedUser: CachedUser, sessionId = `session of ${cachedUser.user.id}`): Principal => ({
  token: `token of ${sessionId}`,
  cachedUser,
  credentialId: sessionId,
  client: null,
  scopes: null,
  expiresAt: START + 10 * IDLE,
  impersonatedBy: null,
  amr: ['pwd'],
  authenticatedAt: START,
  lastRequestAt: START,
  storedRequestAt: START,
  queriedAt: 0,
  used: false,
})

type KeyKind = 'apiKeys' | 'adminKeys'

const adminKey = (id: string) => ({ credentialId: id, lastRequestAt: START, storedRequestAt: START })

interface UserLastRequest {
  readonly key: number
  readonly at: number
}

/** Keeps the latest timestamp of each key, like a store. Fails or waits when the test asks for it. */
class TestStore implements LastRequestStore {
  /** By key. */
  readonly #users = new Map<number, number>()
  readonly sessions = new Map<string, number>()
  readonly apiKeys = new Map<string, number>()
  readonly adminKeys = new Map<string, number>()
  readonly calls: { users: readonly UserLastRequest[]; sessions: readonly CredentialLastRequest[] }[] = []
  failing = false
  keysFailing = false
  gate: Promise<void> = Promise.resolve()

  get users(): Map<string, number> {
    const noted = [...keys].filter(([, key]) => this.#users.has(key))
    return new Map(noted.map(([id, key]) => [id, this.#users.get(key) ?? 0]))
  }

  async recordLastRequests(
    pairs: UserLastRequests,
    sessions: readonly CredentialLastRequest[],
  ): Promise<void> {
    const users: UserLastRequest[] = []
    for (let index = 0; index < pairs.length; index += 2)
      users.push({ key: pairs[index] as number, at: pairs[index + 1] as number })
    this.calls.push({ users, sessions })
    await this.gate
    if (this.failing) throw new Error('the store is away')
    for (const { key, at } of users) this.#users.set(key, at)
    for (const { id, at } of sessions) this.sessions.set(id, at)
  }

  async recordKeyRequests(kind: KeyKind, requests: readonly CredentialLastRequest[]): Promise<void> {
    if (this.failing || this.keysFailing) throw new Error('the store is away')
    for (const { id, at } of requests) this[kind].set(id, at)
  }
}

const setUp = ({ flushAt, interval = 1_000, idle = IDLE }: Partial<LastRequestsDeps> = {}) => {
  const store = new TestStore()
  const failures: unknown[] = []
  const userCache = new UserCache()
  const onFailure = (error: unknown) => failures.push(error)
  const keyStore = (kind: KeyKind) => ({
    recordRequests: (requests: readonly CredentialLastRequest[]) => store.recordKeyRequests(kind, requests),
  })
  const parts = {
    userCache,
    store,
    apiKeys: keyStore('apiKeys'),
    adminKeys: keyStore('adminKeys'),
    interval,
    idle,
    closing: SHUTDOWN.lastRequests,
    onFailure,
  }
  const lastRequests = new LastRequests(flushAt === undefined ? parts : { ...parts, flushAt })
  return { store, failures, userCache, lastRequests }
}

t.test('a last request is visible at once, and stored after a flush', async t => {
  const { store, userCache, lastRequests } = setUp()
  const ada = cachedUser('ada', START - 5_000)
  userCache.add(ada)
  lastRequests.record(principal(ada), START)
  t.equal(ada.lastRequestAt, START)
  t.equal(userCache.latest('ada', START - 5_000), START, 'also for a new lookup')
  t.equal(userCache.latest('bob', START - 5_000), START - 5_000, 'a user without a request')
  t.equal(userCache.latest('bob', null), null)
  t.equal(store.calls.length, 0, 'a request writes nothing')
  await lastRequests.flush()
  t.equal(store.users.get('ada'), START)
  await lastRequests.flush()
  t.equal(store.calls.length, 1, 'nothing new, nothing written')
})

t.test('many requests of a user are one row of a batch', async t => {
  const { store, lastRequests } = setUp()
  const ada = cachedUser('ada')
  const sessions = [principal(ada, 'one'), principal(ada, 'two')]
  for (let n = 1; n <= 1_000; n += 1) for (const session of sessions) lastRequests.record(session, START + n)
  await lastRequests.flush()
  t.equal(store.calls.length, 1)
  t.strictSame(store.calls[0]?.users, [{ key: keyOf('ada'), at: START + 1_000 }])
})

t.test('a flush starts early when too many users are due, unless the last one failed', async t => {
  const { store, failures, lastRequests } = setUp({ flushAt: 3 })
  const note = (...ids: string[]) => {
    for (const id of ids) lastRequests.record(principal(cachedUser(id)), START)
  }
  note('ada', 'bob')
  t.equal(store.calls.length, 0)
  note('eve')
  await nextTurn()
  t.equal(store.calls.length, 1)
  await lastRequests.flush()
  t.strictSame([...store.users.keys()].sort(), ['ada', 'bob', 'eve'])
  store.failing = true
  note('fay', 'gus', 'hal')
  await lastRequests.flush()
  t.equal(failures.length, 1)
  const calls = store.calls.length
  note('kay', 'leo', 'mia')
  await nextTurn()
  t.equal(store.calls.length, calls, "the next one is the timer's")
  store.failing = false
  await lastRequests.flush()
  t.equal(store.users.size, 9, 'none is lost')
  note('ned', 'oda', 'pam')
  await nextTurn()
  t.equal(store.calls.length, calls + 2)
  await lastRequests.flush()
  t.equal(store.users.size, 12)
})

t.test('few users stay due when a flush starts early for their many requests', async t => {
  const { store, userCache, lastRequests } = setUp({ flushAt: 6 })
  const request = (id: string, at: number) => {
    lastRequests.recordDetached(principal(cachedUser(id)), at)
    userCache.saveTimestamp(id, at)
  }
  request('zoe', START)
  for (let count = 1; count <= 12; count += 1) {
    request('ada', START + count)
    await nextTurn()
  }
  t.equal(store.calls.length, 0, 'two users')
  t.equal(userCache.latest('ada', START), START + 12, 'whose last request is known')
  const { adminKeys } = store
  lastRequests.recordAdminKey(adminKey('root'), START + 60_000)
  store.failing = true
  await lastRequests.flush(Number.POSITIVE_INFINITY)
  store.failing = false
  t.equal(adminKeys.size, 0, 'a flush of keys that fails keeps them too')
  for (const id of ['bob', 'eve', 'fay']) request(id, START)
  // The first one has begun, early.
  await lastRequests.flush()
  await lastRequests.flush()
  t.equal(store.users.get('ada'), START + 12)
  t.equal(store.users.get('zoe'), START)
  t.equal(store.users.size, 5)
})

t.test('users are written once an interval, sessions within a hundredth of their idle time', async t => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  const { store, lastRequests } = setUp({ interval: 300_000, idle: 10_000_000 })
  const ada = cachedUser('ada')
  const session = principal(ada)
  lastRequests.start()
  const at = async (seconds: number) => {
    lastRequests.record(session, START + seconds * 1_000)
    mock.timers.tick(100_000)
    await lastRequests.flush(Number.POSITIVE_INFINITY)
  }
  await at(100)
  t.equal(store.sessions.get(session.credentialId), START + 100_000)
  t.equal(store.users.size, 0)
  await at(200)
  t.equal(store.sessions.get(session.credentialId), START + 200_000)
  t.equal(store.users.size, 0)
  await at(300)
  await until(
    () => store.users.get('ada'),
    stored => stored === START + 300_000,
    5_000,
  )
  t.equal(store.users.get('ada'), START + 300_000)
  await lastRequests.close()
})

t.test('an interval is also the step of sessions that may be idle for long', async t => {
  const { store, lastRequests } = setUp({ interval: 300_000, idle: 100 * 86_400_000 })
  const session = principal(cachedUser('ada'))
  lastRequests.record(session, START + 299_999)
  await lastRequests.flush()
  t.equal(store.sessions.size, 0)
  lastRequests.record(session, START + 300_000)
  await lastRequests.flush()
  t.equal(store.sessions.get(session.credentialId), START + 300_000)
})

t.test('a last request does not move back when the clock does', async t => {
  const { store, userCache, lastRequests } = setUp()
  const ada = cachedUser('ada', START + 60_000)
  userCache.add(ada)
  lastRequests.record(principal(ada), START)
  t.equal(ada.lastRequestAt, START + 60_000, 'the stored timestamp is later than the clock')
  lastRequests.record(principal(ada, 'one'), START + 70_000)
  lastRequests.record(principal(ada, 'two'), START + 65_000)
  t.equal(ada.lastRequestAt, START + 70_000, 'in memory')
  t.equal(userCache.latest('ada', START), START + 70_000)
  t.equal(userCache.latest('ada', START + 80_000), START + 80_000, 'another instance knows a later one')
  await lastRequests.flush()
  t.equal(store.users.get('ada'), START + 70_000, 'in the store')
})

t.test('a request is noted even if the session was opened by a clock that is ahead', async t => {
  const { store, lastRequests } = setUp()
  const ada = cachedUser('ada')
  const session = { ...principal(ada), lastRequestAt: START + 3_000 }
  lastRequests.record(session, START)
  t.equal(ada.lastRequestAt, START)
  t.equal(session.lastRequestAt, START + 3_000, 'not moved back')
  await lastRequests.flush()
  t.equal(store.users.get('ada'), START)
})

t.test('a session is written once its timestamp is older by a fraction of the idle time', async t => {
  const { store, lastRequests } = setUp()
  const session = principal(cachedUser('ada'))
  lastRequests.record(session, START + 1)
  await lastRequests.flush()
  t.equal(store.sessions.size, 0, 'a little later: too little to matter for idle time')
  lastRequests.record(session, START + IDLE / 2)
  await lastRequests.flush()
  t.equal(store.sessions.get(session.credentialId), START + IDLE / 2)
  t.equal(store.apiKeys.size, 0)
})

t.test('an API key is written like a session, and apart from it', async t => {
  const { store, failures, lastRequests } = setUp()
  const apiKey = { ...principal(cachedUser('ada')), credentialId: 'a key', scopes: ['account:read'] }
  store.failing = true
  lastRequests.record(apiKey, START + IDLE / 2)
  await lastRequests.flush()
  t.equal(failures.length, 1)
  t.equal(lastRequests.latestOf('a key', START), START + IDLE / 2, 'known as long as it is not written')
  store.failing = false
  await lastRequests.flush()
  t.equal(store.apiKeys.get('a key'), START + IDLE / 2)
  t.equal(store.sessions.size, 0)
})

t.test('keys are written once a minute, whatever the idle time of sessions', async t => {
  const { store, lastRequests } = setUp()
  const ada = cachedUser('ada')
  const session = principal(ada)
  const apiKey = { ...principal(ada), credentialId: 'an API key', scopes: ['account:read'] }
  const key = adminKey('an admin key')
  const noted = async (at: number) => {
    lastRequests.record(session, at)
    lastRequests.record(apiKey, at)
    lastRequests.recordAdminKey(key, at)
    await lastRequests.flush()
    return [store.sessions, store.apiKeys, store.adminKeys].map(kind => [...kind.values()])
  }
  const [early, minute] = [START + IDLE / 100, START + 60_000]
  t.strictSame(await noted(early - 1), [[], [], []])
  t.strictSame(await noted(early), [[early], [], []])
  t.strictSame(await noted(minute - 1), [[early], [], []])
  t.strictSame(await noted(minute), [[early], [minute], [minute]])
  t.equal(key.lastRequestAt, minute)
  lastRequests.recordAdminKey(key, START)
  t.equal(key.lastRequestAt, minute, 'not moved back')
})

t.test('a failed write of keys repeats no write of users', async t => {
  const { store, failures, lastRequests } = setUp()
  store.keysFailing = true
  lastRequests.record(principal(cachedUser('ada')), START + IDLE / 2)
  lastRequests.recordAdminKey(adminKey('a key'), START + IDLE / 2)
  await lastRequests.flush()
  t.equal(store.users.get('ada'), START + IDLE / 2)
  await lastRequests.flush()
  t.equal(failures.length, 2)
  t.equal(store.calls.length, 1)
  t.equal(lastRequests.statistics.rows, 2, 'a user and a session')
  store.keysFailing = false
  await lastRequests.flush()
  t.equal(store.adminKeys.get('a key'), START + IDLE / 2)
})

t.test('a store failure loses nothing and fails no request', async t => {
  const { store, failures, userCache, lastRequests } = setUp()
  const [ada, bob, eve] = [cachedUser('ada'), cachedUser('bob'), cachedUser('eve')]
  userCache.add(ada)
  const session = principal(ada)
  store.failing = true
  lastRequests.record(session, START + IDLE / 2)
  lastRequests.record(principal(bob), START + 1)
  await lastRequests.flush()
  t.equal(failures.length, 1, 'reported once')
  userCache.evict('ada')
  t.equal(userCache.latest('ada', null), START + IDLE / 2, 'still known')
  await lastRequests.flush()
  t.equal(failures.length, 2)
  t.equal(userCache.latest('ada', null), START + IDLE / 2, 'as long as it is not written')
  lastRequests.record(principal(bob), START + 2)
  lastRequests.record(principal(eve), START + 3)
  store.failing = false
  await lastRequests.flush()
  t.strictSame(
    [...store.users].sort(),
    [
      ['ada', START + IDLE / 2],
      ['bob', START + 2],
      ['eve', START + 3],
    ],
    'all of it is written later, the newest of each',
  )
  t.equal(store.sessions.get(session.credentialId), START + IDLE / 2, 'the session too')
  lastRequests.record(session, START + IDLE)
  await lastRequests.flush()
  t.equal(store.users.get('ada'), START + IDLE, 'and it goes on')
  t.equal(failures.length, 2)
})

t.test('a failed flush does not overwrite a newer request', async t => {
  const { store, userCache, lastRequests } = setUp()
  const gate = Promise.withResolvers<void>()
  store.gate = gate.promise
  store.failing = true
  const ada = cachedUser('ada')
  userCache.add(ada)
  lastRequests.record(principal(ada), START + 1)
  const flush = lastRequests.flush()
  // Evicted and looked up again: another record of the same user.
  userCache.evict('ada')
  const again = cachedUser('ada', userCache.latest('ada', null) ?? 0)
  t.equal(again.lastRequestAt, START + 1, 'visible while it is being written')
  lastRequests.record(principal(again), START + 9)
  gate.resolve()
  await flush
  store.failing = false
  await lastRequests.flush()
  t.equal(store.users.get('ada'), START + 9)
})

t.test('the last request of an evicted user is kept until the flush after its write', async t => {
  const { store, userCache, lastRequests } = setUp()
  const gate = Promise.withResolvers<void>()
  const [ada, bob] = [cachedUser('ada'), cachedUser('bob')]
  for (const user of [ada, bob]) {
    userCache.add(user)
    lastRequests.record(principal(user), START)
  }
  userCache.remove(ada)
  t.equal(userCache.latest('ada', null), START, 'before the flush')
  store.gate = gate.promise
  const flush = lastRequests.flush()
  userCache.evictAll()
  t.equal(userCache.latest('ada', null), START, 'while it is in progress')
  gate.resolve()
  await flush
  t.equal(userCache.latest('ada', null), START, 'for reads that began before the write')
  t.equal(userCache.latest('bob', null), START, 'evicted during a flush: the next flush writes it')
  await lastRequests.flush()
  t.equal(userCache.latest('ada', null), null, 'the store has it')
  t.equal(userCache.latest('bob', null), START)
  await lastRequests.flush()
  t.equal(userCache.latest('bob', null), null)
})

t.test('a flush runs in slices, and a failed slice keeps the rest', async t => {
  const { store, lastRequests } = setUp()
  const ids = Array.from({ length: 17_500 }, (_, index) => `user ${index}`)
  for (const id of ids) lastRequests.record(principal(cachedUser(id)), START + IDLE / 2)
  const write = store.recordLastRequests.bind(store)
  store.recordLastRequests = (users, sessions) => {
    store.failing = store.calls.length === 2
    return write(users, sessions)
  }
  await lastRequests.flush()
  t.ok(store.users.size > 0 && store.users.size < ids.length, 'the slices before are written')
  await lastRequests.flush()
  t.equal(store.users.size, ids.length, 'all users')
  t.equal(store.sessions.size, ids.length, 'all sessions')
  for (const { users, sessions } of store.calls) {
    if (users.length > 5_000 || sessions.length > 5_000) t.fail('a slice too large to be short')
  }
  const rows = store.calls.reduce((sum, { users }) => sum + users.length, 0)
  const failed = store.calls[2]?.users.length ?? 0
  t.equal(rows, ids.length + failed, 'nothing is written twice but the slice that failed')
})

t.test('last requests are sorted by key, of any size, and the newest of each is kept', async t => {
  const key = fc.oneof(fc.nat(10), fc.nat(100_000), fc.maxSafeNat())
  const requests = fc.array(fc.tuple(key, fc.nat(3)), { maxLength: 50 })
  const isSorted = async (given: readonly (readonly [number, number])[]) => {
    const sorted = given.toSorted(([one, at], [other, otherAt]) => one - other || at - otherAt)
    t.strictSame([...(await sortRequests(Float64Array.from(given.flat())))], [...new Map(sorted)].flat())
  }
  await fc.assert(fc.asyncProperty(requests, async given => void (await isSorted(given))))
  // More than a slice.
  await isSorted(Array.from({ length: 80_000 }, (_, index) => [(index * 7_919) % 40_009, index]))
})

t.test('a principal that is not cached is noted by numbers alone, each user once', async t => {
  const { store, lastRequests } = setUp()
  const restored = () => principal({ ...cachedUser('ada', START - 5_000), current: false })
  const [one, two] = [restored(), restored()]
  lastRequests.recordDetached(two, START + IDLE / 2)
  lastRequests.recordDetached(one, START)
  t.equal(one.cachedUser.lastRequestAt, START)
  t.equal(one.lastRequestAt, START)
  t.equal(lastRequests.latestOf(two.credentialId, START), START + IDLE / 2)
  lastRequests.record(principal(cachedUser('bob')), START)
  // Later changes of the objects are not written.
  one.cachedUser.lastRequestAt = START + IDLE
  store.failing = true
  await lastRequests.flush()
  store.failing = false
  await lastRequests.flush()
  t.strictSame([...store.users].sort(), [
    ['ada', START + IDLE / 2],
    ['bob', START],
  ])
  t.equal(store.calls.at(-1)?.users.length, 2)
  t.equal(store.sessions.get(two.credentialId), START + IDLE / 2)
  const behind = principal(cachedUser('eve', START + 60_000))
  lastRequests.recordDetached(behind, START + 1)
  t.equal(behind.cachedUser.lastRequestAt, START + 60_000, 'not moved back')
  await lastRequests.flush()
  t.notOk(store.users.has('eve'))
})

t.test('a flush writes users in the order of their keys, also across slices', async t => {
  const { store, lastRequests } = setUp()
  const users = Array.from({ length: 7_000 }, (_, index) => cachedUser(`number ${index}`))
  const byId = users.toSorted((one, other) => one.user.id.localeCompare(other.user.id))
  for (const [index, user] of byId.entries()) lastRequests.record(principal(user), START + index)
  await lastRequests.flush()
  const written = store.calls.flatMap(({ users }) => users)
  t.strictSame(
    written,
    users.map(({ key, lastRequestAt }) => ({ key, at: lastRequestAt })),
  )
})

t.test('only one flush runs at a time', async t => {
  const { store, lastRequests } = setUp()
  const gate = Promise.withResolvers<void>()
  store.gate = gate.promise
  lastRequests.record(principal(cachedUser('ada')), START)
  const flushes = [lastRequests.flush(), lastRequests.flush(), lastRequests.flush()]
  await nextTurn()
  t.equal(store.calls.length, 1)
  gate.resolve()
  await Promise.all(flushes)
  t.equal(store.calls.length, 1)
})

for (const failing of [false, true]) {
  const how = failing ? 'fails' : 'succeeds'
  t.test(`\`close()\` writes what was noted during a flush that ${how}`, async t => {
    const { store, lastRequests } = setUp()
    const gate = Promise.withResolvers<void>()
    store.gate = gate.promise
    store.failing = failing
    lastRequests.start()
    const ada = cachedUser('ada')
    lastRequests.record(principal(ada), START + 1)
    lastRequests.record(principal(cachedUser('eve')), START + 1)
    const flush = lastRequests.flush()
    lastRequests.record(principal(ada), START + 5)
    const closed = lastRequests.close()
    lastRequests.record(principal(cachedUser('bob')), START + 6)
    gate.resolve()
    await flush
    store.failing = false
    await closed
    t.equal(store.users.get('ada'), START + 5)
    t.equal(store.users.get('eve'), START + 1)
    t.equal(store.users.get('bob'), START + 6, 'also what came while it closed')
  })
}

for (const kind of ['apiKeys', 'adminKeys'] as const) {
  t.test(`\`close()\` repeats the write of ${kind} while only theirs fails`, async t => {
    const { store, failures, lastRequests } = setUp()
    const at = START + IDLE / 2
    store.keysFailing = true
    if (kind === 'adminKeys') lastRequests.recordAdminKey(adminKey('a key'), at)
    else lastRequests.record({ ...principal(cachedUser('ada'), 'a key'), scopes: [] }, at)
    const closed = lastRequests.close()
    await until(
      () => failures.length,
      length => length > 0,
      10_000,
    )
    store.keysFailing = false
    await closed
    t.equal(store[kind].get('a key'), at)
    t.equal(failures.length, 1)
  })
}
