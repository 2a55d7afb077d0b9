/**
 * Authenticator with an asynchronous store: races, capacity, eviction (§5.1.2; docs/design.md, "Tokens and sessions", "Hot path" and
 * "Storage").
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import t from 'tap'
import { API_KEY_PREFIX, keyDigest, newOpaqueKey } from '#core/auth/opaque-key'
import type { Principal } from '#core/auth/principal'
import { keyOf } from '#core/auth/token-cache'
import { NO_METADATA } from '#core/users/metadata'
import type { User } from '#core/users/user'
import { checksum } from '../support/api-keys.ts'
import { LIMITS, settle, setUp, type TestCredential } from '../support/authenticator.ts'

const nameOf = (principal: Principal | null): string | null | undefined =>
  principal?.cachedUser.user.firstName

/** Milliseconds for which a lookup is valid, plus a margin. */
const GOOD_FOR = 120

t.test('a change during a lookup is respected', async t => {
  for (const old of [true, false]) {
    const { store, authenticator, open, change, revoke } = setUp()
    const { session, token } = open('ada')

    const renamed = authenticator.authenticate(token)
    change('ada', { firstName: 'version 1' })
    store.waiting.shift()?.(old)
    await settle()
    store.waiting.shift()?.(old)
    t.equal(nameOf(await renamed), 'version 1', `a change, the lookup returns ${old ? 'old' : 'new'}`)
    t.equal(nameOf(await authenticator.authenticate(token)), 'version 1', 'and is what was cached')

    change('ada', { firstName: 'version 2' })
    const disabled = authenticator.authenticate(token)
    change('ada', { disabled: true })
    store.waiting.shift()?.(old)
    await settle()
    store.waiting.shift()?.(old)
    t.equal(await disabled, null, 'disabled')

    change('ada', { disabled: false })
    const revoked = authenticator.authenticate(token)
    revoke(session)
    store.waiting.shift()?.(old)
    await settle()
    store.waiting.shift()?.(old)
    t.equal(await revoked, null, 'revoked')
    const after = authenticator.authenticate(token)
    store.waiting.shift()?.(old)
    t.equal(await after, null, 'and from then on')
    t.equal(store.waiting.length, 0, 'no lookup waits')
  }
})

t.test('each of several changes during one lookup is respected', async t => {
  const { store, authenticator, open, change, revoke } = setUp()
  const { session, token } = open('ada')
  const response = authenticator.authenticate(token)
  for (let round = 1; round <= 5; round += 1) {
    change('ada', { firstName: `version ${round}` })
    store.waiting.shift()?.(true)
    await settle()
  }
  revoke(session)
  store.waiting.shift()?.(true)
  await settle()
  store.waiting.shift()?.(true)
  t.equal(await response, null)
})

t.test('a change of an unknown user during a lookup is respected', async t => {
  const { store, authenticator, open } = setUp()
  const { session, token } = open('ada')
  const response = authenticator.authenticate(token)
  store.sessions.delete(session.id)
  authenticator.invalidateAll()
  store.waiting.shift()?.(true)
  await settle()
  store.waiting.shift()?.(true)
  t.equal(await response, null)
})

t.test('nothing is cached while the invalidation feed is down', async t => {
  const { store, authenticator, userCache, open, clock } = setUp()
  store.later = false
  const { session, token } = open('ada')
  authenticator.authenticate(token)
  authenticator.setFeedConnected(false)
  const lookups = store.lookups
  for (let request = 1; request <= 3; request += 1) {
    const principal = await authenticator.authenticate(token)
    t.equal(store.lookups, lookups + request, 'each request looks it up')
    t.ok(principal && authenticator.isCurrent(principal))
    await sleep(GOOD_FOR)
    t.notOk(principal && authenticator.isCurrent(principal), 'a later gate looks it up again')
  }
  t.equal(userCache.latest('ada', null), clock.now(), 'the last request is known all the same')
  store.sessions.delete(session.id)
  t.equal(await authenticator.authenticate(token), null, 'as another instance left it')
  store.sessions.set(session.id, session)
  authenticator.setFeedConnected(true)
  for (let request = 1; request <= 3; request += 1) await authenticator.authenticate(token)
  t.equal(store.lookups, lookups + 5, 'cached again, from the first lookup on')
})

t.test('the cache is bypassed while invalidations are late, and used again afterwards', async t => {
  const { store, authenticator, userCache, lastRequests, open, clock, change, revoke } = setUp()
  store.later = false
  const [ada, bob, eve] = [open('ada'), open('bob'), open('eve')]
  const found = await authenticator.authenticate(ada.token)
  for (const { token } of [bob, eve]) authenticator.authenticate(token)
  t.ok(found && authenticator.isCurrent(found))
  authenticator.setFeedLate(true)
  t.notOk(found && authenticator.isCurrent(found), 'a gate looks up again who was found before')
  const lookups = store.lookups
  for (let request = 1; request <= 3; request += 1) {
    const principal = await authenticator.authenticate(ada.token)
    t.equal(store.lookups, lookups + request, 'each request looks it up')
    t.ok(principal && authenticator.isCurrent(principal), 'good enough for the gate that comes at once')
    clock.advance(1_000)
    await sleep(GOOD_FOR)
    t.notOk(principal && authenticator.isCurrent(principal), 'not for one that comes when the body is there')
  }
  const latest = clock.now() - 1_000
  t.equal(userCache.latest('ada', null), latest, 'the last request is known all the same')
  const passing = await authenticator.authenticate(eve.token)
  t.ok(passing && authenticator.isCurrent(passing))
  change('bob', { firstName: 'version 1' })
  t.notOk(passing && authenticator.isCurrent(passing), 'something has changed meanwhile: perhaps this user')
  // A change by another instance, not yet notified.
  store.sessions.delete(bob.session.id)
  t.equal(await authenticator.authenticate(bob.token), null)
  change('ada', { firstName: 'version 1' })
  t.equal(userCache.latest('ada', null), latest, 'nor does it move back when the older record goes')
  revoke(eve.session)
  authenticator.setFeedLate(false)
  const before = store.lookups
  t.equal(nameOf(await authenticator.authenticate(ada.token)), 'version 1')
  t.equal(await authenticator.authenticate(eve.token), null, 'a change that was notified meanwhile counts')
  t.equal(store.lookups, before + 2)
  authenticator.setFeedLate(true)
  await authenticator.authenticate(ada.token)
  await lastRequests.flush()
  authenticator.setFeedLate(false)
  clock.advance(-500)
  t.equal(
    (await authenticator.authenticate(ada.token))?.cachedUser.lastRequestAt,
    clock.now() + 500,
    'not moved back',
  )
  t.equal(store.lookups, before + 3, 'nothing is looked up again')
})

t.test('a lookup that began before the feed was up is repeated', async t => {
  const { store, authenticator, open } = setUp()
  authenticator.setFeedConnected(false)
  const { session, token } = open('ada')
  const response = authenticator.authenticate(token)
  store.sessions.delete(session.id)
  authenticator.setFeedConnected(true)
  store.waiting.shift()?.(true)
  await settle()
  store.waiting.shift()?.(true)
  t.equal(await response, null)
})

t.test('changes of other users do not repeat a lookup endlessly', async t => {
  const { store, authenticator, open, change } = setUp()
  const { token } = open('ada')
  open('bob')
  let responded = false
  const response = Promise.resolve(authenticator.authenticate(token)).finally(() => {
    responded = true
  })
  for (let round = 0; round < 100 && !responded; round += 1) {
    change('bob', { firstName: `version ${round}` })
    store.waiting.shift()?.(false)
    await settle()
  }
  t.ok(responded, `${store.lookups} lookups while another user changed as often`)
  store.waiting.shift()?.(false)
  t.equal((await response)?.cachedUser.user.id, 'ada')
})

t.test('a change before the lookup reaches the store causes no second lookup', async t => {
  const { store, authenticator, open, change } = setUp()
  const { token } = open('ada')
  const response = authenticator.authenticate(token)
  change('ada', { firstName: 'version 1' })
  authenticator.setFeedConnected(false)
  store.queued.shift()?.()
  store.waiting.shift()?.(true)
  t.equal(nameOf(await response), 'version 1')
  t.equal(store.lookups, 1)

  const again = authenticator.authenticate(token)
  store.queued.shift()?.()
  change('ada', { firstName: 'version 2' })
  store.waiting.shift()?.(true)
  await settle()
  store.waiting.shift()?.(true)
  t.equal(nameOf(await again), 'version 2', 'one after it does')
  t.equal(store.lookups, 3)
})

for (const kind of ['session', 'apiKey'] as const) {
  t.test(`${kind}: an earlier lookup does not restore what a later one found revoked`, async t => {
    const { store, authenticator, addCredential } = setUp()
    const { token, remove } = addCredential(kind, 'ada')
    const earlier = authenticator.authenticate(token)
    // By another instance, not yet notified.
    remove()
    const later = authenticator.authenticate(token)
    store.waiting.pop()?.(true)
    t.equal(await later, null)
    store.waiting.pop()?.(true)
    await settle()
    store.waiting.pop()?.(true)
    t.equal(await earlier, null)
    const after = authenticator.authenticate(token)
    store.waiting.pop()?.(true)
    t.equal(await after, null, 'nor is it cached')
  })

  t.test(`${kind}: a lookup that finds it revoked evicts what an earlier one has cached`, async t => {
    const { store, authenticator, addCredential } = setUp()
    const { token, remove } = addCredential(kind, 'ada')
    const earlier = authenticator.authenticate(token)
    remove()
    const later = authenticator.authenticate(token)
    store.waiting.shift()?.(true)
    t.ok(await earlier, 'the change is not known here yet')
    store.waiting.shift()?.(true)
    t.equal(await later, null)
    const after = authenticator.authenticate(token)
    store.waiting.shift()?.(true)
    t.equal(await after, null)
  })
}

t.test('invented API keys that wait for the store together take no memory of each other', async t => {
  const { store, authenticator } = setUp()
  // As many as wait at most for a connection. A set of the others for each would be 200 million entries.
  const waiting = Array.from({ length: 20_000 }, () =>
    authenticator.authenticate(newOpaqueKey(API_KEY_PREFIX).text),
  )
  for (const respond of store.waiting.splice(0)) respond(true)
  t.ok((await Promise.all(waiting)).every(principal => principal === null))
  t.equal(store.lookups, waiting.length, 'none is repeated')
})

t.test('two overlapping lookups return the same cached user', async t => {
  const { store, authenticator, open, change } = setUp()
  const [one, two] = [open('ada'), open('ada')]
  const first = authenticator.authenticate(one.token)
  store.waiting.shift()?.(true)
  await first
  const second = authenticator.authenticate(two.token)
  change('ada', { firstName: 'version 1' })
  const again = authenticator.authenticate(one.token)
  while (store.waiting.length > 0) {
    store.waiting.pop()?.(true)
    await settle()
  }
  t.equal(nameOf(await second), 'version 1')
  t.equal(nameOf(await again), 'version 1')
})

t.test('a failed lookup fails only its own request', async t => {
  const { store, authenticator, open } = setUp()
  const { token } = open('ada')
  const find = store.find.bind(store)
  store.find = () => Promise.reject(new Error('connection lost'))
  await t.rejects(Promise.resolve(authenticator.authenticate(token)), { message: 'connection lost' })
  store.find = find
  store.later = false
  t.equal((await authenticator.authenticate(token))?.cachedUser.user.id, 'ada', 'the failure was not cached')
})

t.test('the cache respects its capacity, and eviction changes no result', async t => {
  const { store, authenticator, open } = setUp(10)
  store.later = false
  const all = Array.from({ length: 300 }, (_, index) => open(`user ${index % 100}`))
  for (let round = 0; round < 3; round += 1) {
    for (const { session, token } of all) {
      const principal = await authenticator.authenticate(token)
      if (principal?.credentialId !== session.id || principal.cachedUser.user.id !== session.userId)
        t.fail('wrong')
    }
  }
  t.equal(store.lookups, 900, 'a round over more tokens than the cache holds looks up each of them')
  const [first] = all
  for (let n = 0; n < 50; n += 1) await authenticator.authenticate(first?.token ?? '')
  t.equal(store.lookups, 901, 'a token in use stays cached')
  t.same(
    authenticator.cacheStatistics,
    { entries: 10, capacity: 10, hits: 49, misses: 901, evictions: 891 },
    'the metrics say so',
  )
})

t.test('metadata takes up capacity, so that users cannot fill the heap with theirs', async t => {
  const { store, authenticator, open, change } = setUp(100)
  store.later = false
  const all = Array.from({ length: 10 }, (_, index) => open(`user ${index}`))
  const round = async (): Promise<number> => {
    const before = store.lookups
    for (const { token } of all) await authenticator.authenticate(token)
    return store.lookups - before
  }
  await round()
  t.equal(await round(), 0, 'ten users fit')
  // In JSON, of which metadata may have 8 KiB, each control character has six.
  for (const text of ['\u0001'.repeat(1_300), 'x'.repeat(8_000)]) {
    for (const { session } of all) change(session.userId, { userMetadata: { text } })
    t.equal(await round(), 10)
    t.equal(await round(), 10, 'ten with much metadata do not')
  }
  for (let time = 0; time < 5; time += 1) await authenticator.authenticate(all[0]?.token ?? '')
  t.ok((await round()) < 10, 'some of them do')
  for (const { session } of all) change(session.userId, { userMetadata: NO_METADATA })
  await round()
  t.equal(await round(), 0, 'what they took is free again')
  authenticator.invalidateAll()
  await round()
  t.equal(await round(), 0, 'also after the cache was emptied')
})

t.test('a change reaches every token of the user, including evicted ones', async t => {
  const { store, authenticator, open, change } = setUp(4)
  store.later = false
  const mine = Array.from({ length: 3 }, () => open('ada'))
  const others = Array.from({ length: 6 }, (_, index) => open(`other ${index}`))
  const check = async (expected: string | undefined, title: string): Promise<void> => {
    for (const { token } of mine) t.equal(nameOf(await authenticator.authenticate(token)), expected, title)
  }
  let version = 0
  for (let dropped = 0; dropped <= others.length; dropped += 1) {
    for (let learned = 0; learned <= mine.length; learned += 1) {
      await check(`version ${version}`, 'before')
      for (const { token } of others.slice(0, dropped)) await authenticator.authenticate(token)
      for (const { token } of mine.slice(0, learned)) await authenticator.authenticate(token)
      version += 1
      change('ada', { firstName: `version ${version}` })
      await check(`version ${version}`, `dropped by ${dropped}, learned again ${learned}`)
    }
  }
  change('ada', { disabled: true })
  await check(undefined, 'disabled')
})

t.test('a session keeps its last request when it is evicted', async t => {
  const { clock, store, authenticator, open, change } = setUp()
  store.later = false
  const { token } = open('ada')
  for (let round = 0; round < 3; round += 1) {
    clock.advance(0.6 * LIMITS.idle)
    t.ok(await authenticator.authenticate(token), 'within the idle time')
    change('ada', { firstName: `version ${round}` })
  }
})

t.test('a session that is idle here is looked up, since another instance may have used it', async t => {
  const { store, authenticator, open, clock } = setUp()
  store.later = false
  const { session, token } = open('ada')
  t.ok(authenticator.authenticate(token))
  clock.advance(LIMITS.idle + 1)
  store.sessions.set(session.id, { ...session, lastRequestAt: clock.now() - 1 })
  t.ok(authenticator.authenticate(token), 'as the other instance left it')
  clock.advance(LIMITS.idle + 1)
  t.equal(authenticator.authenticate(token), null, 'idle everywhere')
})

t.test('tokens that the first level evicts are restored without a lookup', async t => {
  const { store, authenticator, lastRequests, userCache, clock, addCredential } = setUp(100, 10)
  store.later = false
  const all = Array.from({ length: 90 }, (_, index) =>
    addCredential(index % 3 === 0 ? 'apiKey' : 'session', `user ${index}`),
  )
  const texts = new Map<string, string>()
  const round = (): void => {
    for (const { token, id, userId } of all) {
      const principal = authenticator.authenticate(token) as Principal
      t.match(principal, {
        token,
        credentialId: id,
        cachedUser: { user: { id: userId }, lastRequestAt: clock.now() },
      })
      principal.cachedUser.accountText ??= `the text of ${userId}`
      const { accountText } = principal.cachedUser
      t.equal(accountText, texts.get(userId) ?? accountText, 'nothing is serialized twice')
      texts.set(userId, accountText)
    }
  }
  round()
  for (let time = 0; time < 4; time += 1) {
    clock.advance(20_000)
    round()
    await lastRequests.flush()
  }
  t.equal(store.lookups, 90)
  t.same(authenticator.cacheStatistics, { entries: 90, capacity: 100, hits: 360, misses: 90, evictions: 0 })
  clock.advance(1)
  const { token } = all[0] as TestCredential
  authenticator.authenticate(token)
  t.equal(userCache.latest('user 0', null), clock.now(), 'its last request is known before it is written')
})

t.test('tokens in use move to the first level, and a rotation does not evict them', async t => {
  const { store, authenticator, open } = setUp(200, 10)
  store.later = false
  const all = Array.from({ length: 150 }, (_, index) => open(`user ${index}`))
  const authenticate = (from: number, to: number) =>
    all.slice(from, to).map(({ token }) => {
      const principal = authenticator.authenticate(token) as Principal
      principal.cachedUser.accountText ??= '{}'
      return principal
    })
  authenticate(0, 150)
  for (let time = 0; time < 3; time += 1) authenticate(0, 5)
  const used = authenticate(0, 5)
  t.ok(used.every(({ cachedUser }) => cachedUser.current))
  authenticate(5, 150)
  const again = authenticate(0, 5)
  t.ok(
    again.every((principal, index) => principal === used[index]),
    'the same objects',
  )
  // By chance, more keys share a bucket of the second level than it has places.
  t.ok(store.lookups <= 150 + authenticator.cacheStatistics.evictions)
})

for (const kind of ['session', 'apiKey'] as const) {
  t.test(`${kind}: a restored principal is as current as a cached one`, async t => {
    const { store, authenticator, addCredential, change } = setUp(100, 1)
    store.later = false
    const mine = addCredential(kind, 'ada')
    const others = Array.from({ length: 20 }, (_, index) => addCredential(kind, `other ${index}`))
    const authenticate = ({ token }: TestCredential) => {
      const principal = authenticator.authenticate(token) as Principal | null
      if (principal !== null) principal.cachedUser.accountText ??= '{}'
      return principal
    }
    const restored = (): Principal => {
      for (const other of others) authenticate(other)
      for (const other of others) authenticate(other)
      const before = store.lookups
      const principal = authenticate(mine) as Principal
      t.equal(store.lookups, before, 'no lookup')
      t.equal(principal.cachedUser.current, false, 'for one request')
      return principal
    }
    // The first token keeps its place in the first level.
    for (const credential of [...others, mine]) authenticate(credential)
    const first = restored()
    t.ok(authenticator.isCurrent(first))
    change('ada', { firstName: 'version 1' })
    t.notOk(authenticator.isCurrent(first), 'a change while the request runs')
    t.equal(nameOf(authenticate(mine)), 'version 1')
    t.equal(nameOf(restored()), 'version 1')
    t.equal(nameOf(await authenticator.introspect(mine.token)), 'version 1', 'introspection restores it too')
    mine.revoke()
    t.equal(authenticate(mine), null)
  })
}

t.test('tokens of one user share a record while one of them is in the first level', async t => {
  const { store, authenticator, open, change } = setUp(100, 2)
  store.later = false
  const [one, two] = [open('ada'), open('ada')]
  const others = Array.from({ length: 20 }, (_, index) => open(`other ${index}`))
  const authenticate = ({ token }: { token: string }) => {
    const principal = authenticator.authenticate(token) as Principal
    principal.cachedUser.accountText ??= '{}'
    return principal
  }
  for (const each of [one, two, ...others, ...others]) authenticate(each)
  for (let time = 0; time < 3; time += 1) authenticate(one)
  const hot = authenticate(one)
  const cold = authenticate(two)
  t.equal(cold.cachedUser, hot.cachedUser)
  change('ada', { firstName: 'version 1' })
  t.notOk(authenticator.isCurrent(hot) || authenticator.isCurrent(cold))
  t.equal(nameOf(authenticate(two)), 'version 1')
})

t.test('a restored token does not bring back the text of a changed user', async t => {
  const { store, authenticator, open, revoke } = setUp(100, 2)
  store.later = false
  const [bob, eve, one, two] = [open('bob'), open('eve'), open('ada'), open('ada')]
  const textOf = ({ token }: { token: string }) =>
    (authenticator.authenticate(token) as Principal).cachedUser.accountText
  for (const each of [bob, eve, one]) textOf(each)
  revoke(eve.session)
  t.equal(authenticator.authenticate(eve.token), null, 'the first level has room for one token')
  // Another instance changes the user. Its notification is on the way.
  const ada = store.users.get('ada') as User
  store.users.set('ada', { ...ada, firstName: 'version 1', version: 2 })
  t.equal(textOf(two), null)
  t.match(textOf(one), /version 1/, 'the former one would be sent with the ETag of the changed user')
  t.equal(store.lookups, 6, 'the other token was looked up too')
  authenticator.invalidate('ada')
  t.equal(nameOf(await authenticator.authenticate(one.token)), 'version 1')
})

/** Changes a user as another instance does whose notification has not arrived yet. */
const changeElsewhere = ({ store }: ReturnType<typeof setUp>, userId: string): void => {
  const user = store.users.get(userId)
  if (user !== undefined)
    store.users.set(userId, { ...user, firstName: `version ${user.version}`, version: user.version + 1 })
}

t.test('what a query has shown of a user, no cached token takes back', async t => {
  for (const levels of ['the first level', 'the second level'] as const) {
    // In the second case the only place of the first level is another user's.
    const set = levels === 'the first level' ? setUp() : setUp(10, 1)
    const { store, authenticator, userCache, open } = set
    store.later = false
    if (levels === 'the second level') authenticator.authenticate(open('bob').token)
    const [phone, laptop, tablet] = [open('ada'), open('ada'), open('ada')]
    const seenBy = async ({ token }: typeof phone) => nameOf(await authenticator.authenticate(token))
    for (const each of [phone, laptop]) t.equal(await seenBy(each), 'version 0')
    changeElsewhere(set, 'ada')
    t.equal(await seenBy(phone), 'version 0', `${levels}: not notified yet`)
    t.equal(await seenBy(tablet), 'version 1', `${levels}: the lookup of another token`)
    for (const each of [phone, laptop, tablet]) t.equal(await seenBy(each), 'version 1', levels)
    const lookups = store.lookups
    for (const each of [phone, laptop, tablet]) await seenBy(each)
    t.equal(store.lookups, lookups, 'cached again')
    changeElsewhere(set, 'ada')
    userCache.recordVersion({ id: 'ada', version: 3 })
    for (const each of [phone, laptop, tablet]) t.equal(await seenBy(each), 'version 2', `${levels}: a read`)
  }
})

t.test('a lookup that a newer version has overtaken is repeated, once', async t => {
  for (const kind of ['session', 'apiKey'] as const) {
    const set = setUp()
    const { store, authenticator, userCache, addCredential } = set
    const [phone, laptop] = [addCredential(kind, 'ada'), addCredential(kind, 'ada')]
    const late = authenticator.authenticate(phone.token)
    changeElsewhere(set, 'ada')
    const overtaking = authenticator.authenticate(laptop.token)
    store.waiting.pop()?.(true)
    t.equal(nameOf(await overtaking), 'version 1')
    store.waiting.shift()?.(true)
    await settle()
    store.waiting.shift()?.(true)
    t.equal(nameOf(await late), 'version 1', kind)
    t.equal(nameOf(await authenticator.authenticate(phone.token)), 'version 1', 'and so it is cached')

    // A failover may have lost a change.
    userCache.recordVersion({ id: 'ada', version: 9 })
    const lost = authenticator.authenticate(phone.token)
    store.waiting.shift()?.(true)
    await settle()
    store.waiting.shift()?.(true)
    t.equal(nameOf(await lost), 'version 1', 'what the store has in the end')
    t.equal(store.waiting.length, 0)
  }
})

t.test('a principal that is evicted during its request is not current after a revocation', t => {
  const { store, authenticator, open, revoke } = setUp(1)
  store.later = false
  const [mine, other] = [open('ada'), open('bob')]
  const principal = authenticator.authenticate(mine.token) as Principal
  t.ok(authenticator.isCurrent(principal))
  authenticator.authenticate(other.token)
  revoke(mine.session)
  t.notOk(authenticator.isCurrent(principal))
  t.end()
})

t.test('a restored session that is idle or expired here is looked up', async t => {
  const { store, authenticator, open, clock } = setUp(100, 1)
  store.later = false
  const { session, token } = open('ada')
  authenticator.authenticate(token)
  authenticator.authenticate(open('bob').token)
  clock.advance(LIMITS.idle + 1)
  store.sessions.set(session.id, { ...session, lastRequestAt: clock.now() - 1 })
  t.ok(authenticator.authenticate(token), 'another instance has used it')
  authenticator.authenticate(open('eve').token)
  clock.advance(LIMITS.idle + 1)
  t.equal(authenticator.authenticate(token), null, 'idle everywhere')
})

t.test('an API key that a lookup finds revoked is evicted from the second level too', async t => {
  const { store, authenticator, addCredential } = setUp(100, 1)
  store.later = false
  const [mine, other] = [addCredential('apiKey', 'ada'), addCredential('apiKey', 'bob')]
  for (const { token } of [mine, other]) authenticator.authenticate(token)
  authenticator.setFeedLate(true)
  // By another instance, not yet notified.
  mine.remove()
  t.equal(authenticator.authenticate(mine.token), null)
  authenticator.setFeedLate(false)
  t.equal(authenticator.authenticate(mine.token), null)
  t.equal((authenticator.authenticate(other.token) as Principal).credentialId, other.id)
})

/**
 * 512 API keys that end alike: the caches find tokens by a hash of their last eight characters, two digits and the checksum. CRC-32 is
 * linear, so each of the 41 other digits changes it by a fixed value where it is 1 in place of 0. As it has 32 bits, nine of these
 * values are sums of others.
 */
const keysThatEndAlike = (): string[] => {
  const unchecked = (ones: bigint): string => `${API_KEY_PREFIX}${ones.toString(2).padStart(41, '0')}00`
  const effectOf = (ones: bigint): number => crc32(unchecked(ones)) ^ crc32(unchecked(0n))
  const byHighestBit = new Map<number, bigint>()
  let found = [0n]
  for (let digit = 0n; digit < 41n; digit += 1n) {
    let ones = 1n << digit
    for (let other = byHighestBit.get(Math.clz32(effectOf(ones))); other !== undefined; ) {
      ones ^= other
      other = byHighestBit.get(Math.clz32(effectOf(ones)))
    }
    if (effectOf(ones) !== 0) byHighestBit.set(Math.clz32(effectOf(ones)), ones)
    else if (found.length < 512) found = found.flatMap(sum => [sum, sum ^ ones])
  }
  return found.map(ones => unchecked(ones) + checksum(unchecked(ones)))
}

t.test('S2: of tokens that share a place in the caches each finds its own user', async t => {
  const keys = keysThatEndAlike()
  t.equal(new Set(keys).size, 512)
  t.equal(new Set(keys.map(keyOf)).size, 1, 'one place')
  const [stored, unknown] = [keys.slice(0, 400), keys.slice(400)]
  for (const [capacity, hotCapacity] of [
    [1_000, 1_000],
    [1_000, 1],
    [3, 1],
  ] as const)
    for (const later of [false, true]) {
      const { store, authenticator, open, addApiKey, change } = setUp(capacity, hotCapacity)
      for (const [index, text] of stored.entries()) {
        const { digest } = addApiKey(`user ${index}`)
        const row = store.apiKeys.get(digest)
        if (row !== undefined) store.apiKeys.set(keyDigest(text), row)
      }
      store.later = later
      const authenticate = async (token: string): Promise<string | undefined> => {
        const response = authenticator.authenticate(token)
        while (store.waiting.length > 0) store.waiting.shift()?.(true)
        return (await response)?.cachedUser.user.id
      }
      const wrong: string[] = []
      for (let round = 0; round < 3; round += 1)
        for (const [index, text] of stored.entries()) {
          // The second time it is in a cache, where it replaces the one before.
          for (const found of [await authenticate(text), await authenticate(text)])
            if (found !== `user ${index}`) wrong.push(`${text}: ${found}`)
          const other = unknown[index % unknown.length] ?? ''
          if ((await authenticate(other)) !== undefined) wrong.push(`${other} is nobody's`)
          if (index % 7 === round) change(`user ${index}`, { firstName: `version ${round}` })
        }
      t.strictSame(wrong, [], `${capacity} cached, ${hotCapacity} on the heap, later: ${later}`)
      t.ok(authenticator.cacheStatistics.hits >= stored.length, 'some were found in a cache')

      // Tokens that were refused are cached too: by their text, whose end says nothing about others.
      const { token } = open('ada')
      const forged = ['x', 'x.y', token.split('.').slice(0, 2).join('.').toUpperCase()].map(
        start => `${start}.${token.split('.')[2]}`,
      )
      for (const text of [...forged, token, ...forged, token])
        t.equal(await authenticate(text), text === token ? 'ada' : undefined)
    }
})
