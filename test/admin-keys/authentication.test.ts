/** Which admin keys are accepted, and what that costs (docs/design.md, "Machine callers"). */
import t from 'tap'
import { AdminAuthenticator } from '#core/auth/admin-authenticator'
import type { AdminKey } from '#core/auth/admin-key'
import { LastRequests } from '#core/auth/last-requests'
import { ADMIN_KEY_PREFIX, API_KEY_PREFIX, newOpaqueKey } from '#core/auth/opaque-key'
import { UserCache } from '#core/auth/user-cache'
import { createKey, listKeys, listStatus, revokeKey, withKey } from '../support/admin-keys.ts'
import { ADMIN_KEY, asAdmin, type BuildOptions, manualClock, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { parseResponse } from '../support/process.ts'
import { sendSlowly } from '../support/slow-request.ts'
import { until } from '../support/until.ts'

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  t.test('only the whole key is accepted, and only as x-admin-key', async t => {
    const app = await build(t)
    const { text, headers } = await createKey(app, ['users:read'])
    const { text: other } = newOpaqueKey(ADMIN_KEY_PREFIX)
    const { text: apiKey } = newOpaqueKey(API_KEY_PREFIX)
    const wrong = {
      unknown: other,
      'an API key': apiKey,
      'another prefix': text.replace(ADMIN_KEY_PREFIX, API_KEY_PREFIX),
      'a bad checksum': text.slice(0, -1) + (text.endsWith('0') ? '1' : '0'),
      truncated: text.slice(0, -1),
      longer: `${text}0`,
      doubled: text + text,
      'other case': text.toUpperCase(),
      'the shown prefix': text.slice(0, 13),
      '10 kB': text.padEnd(10_000, '0'),
      'with Bearer': `Bearer ${text}`,
    }
    for (const [name, key] of Object.entries(wrong)) {
      const response = await app.inject({ url: '/admin/users', headers: withKey(key) })
      globalErrorOf(t, response, 401, name)
      t.equal(response.headers['www-authenticate'], 'x-admin-key', name)
    }
    t.equal(await listStatus(app, { authorization: `Bearer ${text}` }), 401)
    t.equal(
      (await app.inject({ url: '/account', headers: { authorization: `Bearer ${text}` } })).statusCode,
      401,
    )
    t.equal(await listStatus(app, headers), 200)
  })

  t.test('a missing scope is a 403 before the body is read', async t => {
    const app = await build(t)
    const { id } = await signUp(app)
    const { headers } = await createKey(app, ['users:read'])
    const url = `/admin/users/${id}`
    for (const payload of ['{}', '{not json', '{"unknown":1}', 'x'.repeat(20_000)]) {
      const request = { method: 'PUT', url, payload } as const
      const response = await app.inject({
        ...request,
        headers: { ...headers, 'content-type': 'application/json' },
      })
      t.match(globalErrorOf(t, response, 403), /scope that the key does not have/)
      const challenge = 'x-admin-key error="insufficient_scope", scope="users:write"'
      t.equal(response.headers['www-authenticate'], challenge)
    }
    t.equal((await app.inject({ url, headers })).statusCode, 200)
    t.equal((await app.inject({ method: 'DELETE', url, headers })).statusCode, 403)
  })

  t.test('lastUsedAt is written in the background, and when the service stops', async t => {
    const clock = manualClock()
    const env = { DATABASE_URL: await newDatabase(t) }
    const options: BuildOptions = { env, clock: clock.now }
    const first = await build(t, options)
    const key = await createKey(first, ['users:read'])
    const lastUsedAt = async (app = first, keyId = key.id) =>
      (await listKeys(app)).find(({ id }: { id: string }) => id === keyId).lastUsedAt
    t.equal(await lastUsedAt(), null)
    clock.advance(5_000)
    const used = new Date(clock.now()).toISOString()
    await listStatus(first, key.headers)
    t.equal(
      await until(
        () => lastUsedAt(),
        value => value !== null,
        10_000,
      ),
      used,
    )
    clock.advance(59_999)
    await listStatus(first, key.headers)
    const other = await createKey(first, ['users:read'])
    await listStatus(first, other.headers)
    // The flush that writes it comes after the request of the first key.
    await until(
      () => lastUsedAt(first, other.id),
      value => value !== null,
      10_000,
    )
    t.equal(await lastUsedAt(), used, 'once a minute')
    clock.advance(1)
    await listStatus(first, key.headers)
    const later = new Date(clock.now()).toISOString()
    await first.close()
    t.equal(await lastUsedAt(await build(t, options)), later)
  })

  t.test('a key that is revoked while the body arrives is refused before the handler', async t => {
    const app = await build(t)
    const { id } = await signUp(app)
    const key = await createKey(app, ['users:write'])
    await app.listen({ port: 0, host: '127.0.0.1' })
    const request = {
      method: 'PUT',
      url: `/admin/users/${id}`,
      headers: key.headers,
      body: { disabled: true },
    }
    const response = await sendSlowly(app, request, () => revokeKey(app, key.id))
    t.equal(parseResponse(response).status, 401)
    const user = await app.inject({ url: `/admin/users/${id}`, headers: asAdmin })
    t.equal(user.json().disabled, false)
  })

  t.test('a revoked key is refused at once here, and within a second elsewhere', async t => {
    const env = { DATABASE_URL: await newDatabase(t) }
    const [one, other] = [await build(t, { env }), await build(t, { env })]
    for (let round = 0; round < 10; round += 1) {
      const key = await createKey(one, ['users:read'])
      for (const app of [one, other]) t.equal(await listStatus(app, key.headers), 200, 'cached')
      t.equal(await revokeKey(one, key.id), 204)
      t.equal(await listStatus(one, key.headers), 401, 'at once')
      const start = Date.now()
      const status = await until(
        () => listStatus(other, key.headers),
        status => status === 401,
        1_000,
      )
      t.equal(status, 401, `after ${Date.now() - start} ms`)
    }
    const key = await createKey(one, ['keys:write'])
    t.equal((await other.inject({ url: '/admin/keys', headers: key.headers })).statusCode, 200)
    await revokeKey(one, key.id)
    t.equal(await revokeKey(other, key.id), 404, 'a refused revocation evicts too')
    t.equal((await other.inject({ url: '/admin/keys', headers: key.headers })).statusCode, 401)
  })
})

/** A store that responds at once, or when the test asks for it, with the state at the start of the query. */
const testStore = () => {
  const keys = new Map<string, AdminKey>()
  const waiting: (() => void)[] = []
  /** For each lookup, a function that starts its query later than the call. */
  const queued: (() => void)[] = []
  const noted: unknown[] = []
  const state = { isRemote: false, lookups: 0 }
  return {
    keys,
    waiting,
    queued,
    noted,
    state,
    find(digest: string, onStart?: () => void) {
      state.lookups += 1
      let found = keys.get(digest)
      if (!state.isRemote) return found
      const { promise, resolve } = Promise.withResolvers<AdminKey | undefined>()
      queued.push(() => {
        found = keys.get(digest)
        onStart?.()
      })
      waiting.push(() => resolve(found))
      return promise
    },
    async recordRequests(requests: readonly unknown[]) {
      noted.push(...requests)
    },
  }
}

const setUp = () => {
  const store = testStore()
  const clock = manualClock()
  const failures: unknown[] = []
  const lastRequests = new LastRequests({
    userCache: new UserCache(),
    store: { recordLastRequests: async () => undefined },
    apiKeys: { recordRequests: async () => undefined },
    adminKeys: { recordRequests: requests => store.recordRequests(requests) },
    interval: 1_000,
    idle: 3_600_000,
    closing: 0,
    onFailure: error => failures.push(error),
  })
  const rootKeys = [ADMIN_KEY]
  const authenticator = new AdminAuthenticator({
    rootKeys,
    adminKeys: store,
    tokens: { verify: () => null },
    clients: { find: () => undefined },
    lastRequests,
    clock: clock.now,
    deliverInvalidations: () => undefined,
  })
  authenticator.setFeedConnected(true)
  const add = (id: string) => {
    const { text, digest, shownPrefix } = newOpaqueKey(ADMIN_KEY_PREFIX)
    const key = {
      id,
      name: id,
      prefix: shownPrefix,
      scopes: ['users:read'],
      createdAt: clock.now(),
      expiresAt: null,
      lastUsedAt: null,
      createdBy: null,
    }
    store.keys.set(digest, key)
    return { text, revoke: () => store.keys.delete(digest) }
  }
  return { store, clock, failures, lastRequests, authenticator, add }
}

t.test('a warm key costs no query, and neither does a text that is no key', async t => {
  const { store, authenticator, add } = setUp()
  const { text } = add('one')
  for (let time = 0; time < 100; time += 1) t.match(authenticator.authenticate(text), { id: 'one' })
  t.equal(store.state.lookups, 1)
  for (const wrong of ['', 'x', `${text}x`, text.slice(1), ADMIN_KEY.slice(1), ADMIN_KEY_PREFIX])
    t.equal(authenticator.authenticate(wrong), null)
  t.match(authenticator.authenticate(ADMIN_KEY), { scopes: null })
  t.equal(store.state.lookups, 1)
})

t.test('the cache is bounded', async t => {
  const { store, authenticator, add } = setUp()
  const [first, ...others] = Array.from({ length: 1_001 }, (_, index) => add(String(index)))
  if (first === undefined) throw new Error('no key')
  authenticator.authenticate(first.text)
  for (const { text } of others.slice(1)) authenticator.authenticate(text)
  t.equal(store.state.lookups, 1_000)
  authenticator.authenticate(first.text)
  t.equal(store.state.lookups, 1_000, 'all fit')
  authenticator.authenticate(others[0]?.text ?? '')
  authenticator.authenticate(first.text)
  t.equal(store.state.lookups, 1_002, 'the oldest was evicted')
})

t.test('an old result of a lookup in flight makes no revoked key valid', async t => {
  for (const change of ['one', 'all'] as const) {
    const { store, authenticator, add } = setUp()
    const { text, revoke } = add('one')
    store.state.isRemote = true
    const found = authenticator.authenticate(text)
    revoke()
    if (change === 'one') authenticator.invalidate('one')
    else authenticator.invalidateAll()
    store.waiting[0]?.()
    await until(
      () => store.waiting.length,
      length => length === 2,
      10_000,
    )
    store.waiting[1]?.()
    t.equal(await found, null, change)
    store.state.isRemote = false
    t.equal(authenticator.authenticate(text), null)
  }
})

t.test('a change of another key or user repeats no lookup', async t => {
  const { store, authenticator, add } = setUp()
  const { text } = add('one')
  store.state.isRemote = true
  const found = authenticator.authenticate(text)
  authenticator.invalidate('two')
  store.waiting[0]?.()
  t.match(await found, { id: 'one' })
  t.equal(store.state.lookups, 1)
})

t.test('a change before the lookup reaches the store causes no second lookup', async t => {
  const { store, authenticator, add } = setUp()
  const one = add('one')
  store.state.isRemote = true
  const found = authenticator.authenticate(one.text)
  authenticator.invalidate('one')
  authenticator.invalidateAll()
  store.queued[0]?.()
  store.waiting[0]?.()
  t.match(await found, { id: 'one' })
  t.equal(store.state.lookups, 1)

  authenticator.invalidate('one')
  const revoked = authenticator.authenticate(one.text)
  one.revoke()
  authenticator.invalidate('one')
  store.queued[1]?.()
  store.waiting[1]?.()
  t.equal(await revoked, null, 'its result includes the change')
  t.equal(store.state.lookups, 2)
})

t.test('while invalidations are late or lost, every request queries the store', async t => {
  const { store, authenticator, add } = setUp()
  const one = add('one')
  authenticator.authenticate(one.text)
  t.equal(store.state.lookups, 1)
  authenticator.setFeedLate(true)
  for (let time = 0; time < 3; time += 1) t.match(authenticator.authenticate(one.text), { id: 'one' })
  t.equal(store.state.lookups, 4)
  authenticator.setFeedLate(false)
  authenticator.authenticate(one.text)
  t.equal(store.state.lookups, 4, 'the cache is valid again')
  authenticator.setFeedLate(true)
  one.revoke()
  t.equal(authenticator.authenticate(one.text), null, 'although no invalidation has arrived')
  authenticator.invalidate('one')
  authenticator.setFeedLate(false)
  t.equal(authenticator.authenticate(one.text), null)

  const two = add('two')
  authenticator.authenticate(two.text)
  authenticator.setFeedConnected(false)
  two.revoke()
  t.equal(authenticator.authenticate(two.text), null, 'without a feed')
  authenticator.setFeedConnected(true)
  t.equal(authenticator.authenticate(two.text), null)
  authenticator.closed()
  const three = add('three')
  const before = store.state.lookups
  for (let time = 0; time < 2; time += 1) authenticator.authenticate(three.text)
  t.equal(store.state.lookups, before + 2, 'nothing is cached after the store is closed')
})

t.test('the time of the last request is noted once a minute, and again after a failure', async t => {
  const { store, clock, failures, lastRequests, authenticator, add } = setUp()
  const { text } = add('one')
  const use = async () => {
    authenticator.authenticate(text)
    await lastRequests.flush()
  }
  await use()
  await use()
  const noted = [{ id: 'one', at: clock.now() }]
  t.strictSame(store.noted, noted)
  clock.advance(60_000)
  const note = store.recordRequests
  store.recordRequests = async () => {
    throw new Error('the store is down')
  }
  await use()
  t.match(failures, [{ message: 'the store is down' }])
  store.recordRequests = note
  const at = clock.now()
  clock.advance(1)
  // Looked up again, with the older time of the store.
  authenticator.invalidate('one')
  await use()
  t.strictSame(store.noted, [...noted, { id: 'one', at }])
})
