/** `POST /admin/warm-up` and `WARM_UP`: the token cache is filled before requests (docs/design.md, "Load tests"). */
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { openStorage } from '#core/store/open'
import type { Storage } from '#core/store/store'
import { allFeatures } from '#features/built-in'
import {
  accountStatus,
  asAdmin,
  bearer,
  build,
  JWT_SECRET,
  logCapture,
  manualClock,
  newFile,
  PASSWORD,
  type SignedUp,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { type Engine, onEnginesOfRun } from '../support/engines.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { readMetrics } from '../support/metrics.ts'
import { createRandom } from '../support/random.ts'
import { newPem } from '../support/token-signers.ts'
import { until } from '../support/until.ts'

/** Milliseconds until a state that does not come counts as missing. */
const DEADLINE = 20_000

const warmUp = async (app: FastifyInstance, payload?: object) => {
  const response = await app.inject({
    method: 'POST',
    url: '/admin/warm-up',
    headers: asAdmin,
    ...(payload && { payload }),
  })
  if (response.statusCode !== 200) throw new Error(`${response.statusCode} ${response.body}`)
  return response.json()
}

const cacheCounts = async (app: FastifyInstance) => {
  const metrics = await readMetrics(app)
  const sum = (name: string) => metrics.sum(`gatehouse_token_cache_${name}`)
  return { hits: sum('hits_total'), misses: sum('misses_total'), entries: sum('entries') }
}

const remove = (app: FastifyInstance, url: string, headers: Record<string, string> = asAdmin) =>
  app.inject({ method: 'DELETE', url, headers })

/** Ways to end a session before its time. */
const REVOCATIONS: Record<string, (app: FastifyInstance, user: SignedUp) => Promise<{ statusCode: number }>> =
  {
    'signed out': (app, { token }) =>
      app.inject({ method: 'POST', url: '/account/sign-out', headers: bearer(token) }),
    'revoked by an administrator': (app, { id }) => remove(app, `/admin/users/${id}/sessions`),
    disabled: (app, { id }) => updateUser(app, id, { disabled: true }),
    deleted: (app, { id }) => remove(app, `/admin/users/${id}`),
  }

/** A store whose pages of sessions are read at once, and returned when the test says so. */
const heldStore = async (env: { DATABASE_URL: string }) => {
  const location = env.DATABASE_URL.startsWith('sqlite:')
    ? ({ engine: 'sqlite', file: env.DATABASE_URL.slice('sqlite:'.length) } as const)
    : ({ engine: 'postgres', url: env.DATABASE_URL } as const)
  const real = await openStorage(location, 5, allFeatures())
  const read = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  let queries = 0
  const storage: Storage = {
    ...real,
    sessions: {
      ...real.sessions,
      async findNewest(...args) {
        queries += 1
        const page = await real.sessions.findNewest(...args)
        read.resolve()
        await released.promise
        return page
      },
    },
  }
  return {
    storage,
    queries: () => queries,
    read: read.promise,
    release: released.resolve,
    fail: released.reject,
  }
}

await onEnginesOfRun(t, async (t, engine) => {
  const newEnv = async (t: Test) => ({ DATABASE_URL: await engine.newDatabase(t), JWT_SECRET })
  const build: Engine['build'] = (t, options) => engine.build(t, { hasher: quickHashing, ...options })
  /** An instance whose cache is empty, on a database with these users. */
  const restarted = async (t: Test, users: number) => {
    const env = await newEnv(t)
    const first = await build(t, { env })
    const signedUp: SignedUp[] = []
    for (let number = 0; number < users; number += 1) signedUp.push(await signUp(first))
    await first.close()
    return { app: await build(t, { env }), users: signedUp, env }
  }

  t.test('afterwards every request finds its token in the cache; a repetition adds nothing', async t => {
    // More than two pages.
    const { app, users } = await restarted(t, 420)
    const before = await cacheCounts(app)
    const result = await warmUp(app)
    t.match(result, { loaded: 420, added: 420 })
    t.ok(result.capacity >= 1_000 && result.seconds >= 0)
    t.equal((await cacheCounts(app)).entries, 420)
    for (const { token, id } of users) {
      const account = await app.inject({ url: '/account', headers: bearer(token) })
      t.equal(account.json().id, id)
    }
    const { hits, misses } = await cacheCounts(app)
    t.same({ hits, misses }, { hits: before.hits + 420, misses: before.misses })
    t.match(await warmUp(app), { loaded: 420, added: 0 })
    t.match(await warmUp(app, { limit: 7 }), { loaded: 7, added: 0 })
  })

  t.test('the limit loads the sessions that were opened last; it notes no request', async t => {
    const { app, users } = await restarted(t, 5)
    t.match(await warmUp(app, { limit: 2 }), { loaded: 2, added: 2 })
    const before = await cacheCounts(app)
    const [old, , , last] = users as [SignedUp, SignedUp, SignedUp, SignedUp, SignedUp]
    const lastRequest = async () =>
      (await app.inject({ url: `/admin/users/${last.id}`, headers: asAdmin })).json().lastRequestAt
    t.equal(await lastRequest(), null)
    t.equal(await accountStatus(app, last.token), 200)
    t.equal((await cacheCounts(app)).misses, before.misses)
    t.equal(await accountStatus(app, old.token), 200)
    t.equal((await cacheCounts(app)).misses, before.misses + 1)
    for (const payload of [{ limit: 0 }, { limit: '5' }, { more: 1 }]) {
      const refused = await app.inject({ method: 'POST', url: '/admin/warm-up', headers: asAdmin, payload })
      t.equal(refused.statusCode, 400)
    }
  })

  t.test('sessions that are revoked afterwards are 401', async t => {
    const { app, users } = await restarted(t, 5)
    await warmUp(app)
    for (const [index, [title, revoke]] of Object.entries(REVOCATIONS).entries()) {
      const user = users[index] as SignedUp
      t.ok((await revoke(app, user)).statusCode < 300, title)
      t.equal(await accountStatus(app, user.token), 401, title)
    }
    t.match(await warmUp(app), { loaded: 1 }, 'they are not loaded again')
    for (const { token } of users.slice(0, 4)) t.equal(await accountStatus(app, token), 401)
    t.equal(await accountStatus(app, users[4]?.token ?? ''), 200)
  })

  t.test('sessions that are revoked while they are loaded are 401', async t => {
    for (const [title, revoke] of Object.entries(REVOCATIONS)) {
      const env = await newEnv(t)
      const { storage, read, release } = await heldStore(env)
      const app = await build(t, { env, storage })
      const [user, other] = [await signUp(app), await signUp(app)]
      const running = warmUp(app)
      await read
      t.ok((await revoke(app, user)).statusCode < 300, title)
      release()
      t.match(await running, { loaded: 1 }, `${title}: the other one is loaded`)
      t.equal(await accountStatus(app, user.token), 401, title)
      t.equal(await accountStatus(app, other.token), 200)
      await app.close()
    }
  })

  t.test('a revocation by another instance while sessions are loaded', async t => {
    const env = await newEnv(t)
    const { storage, read, release } = await heldStore(env)
    const app = await build(t, { env, storage })
    const other = await build(t, { env })
    const user = await signUp(app)
    const running = warmUp(app)
    await read
    t.equal((await remove(other, `/admin/users/${user.id}/sessions`)).statusCode, 204)
    release()
    await running
    const status = await until(
      () => accountStatus(app, user.token),
      status => status === 401,
      DEADLINE,
    )
    t.equal(status, 401, 'once the notification has arrived')
    for (let request = 0; request < 20; request += 1) t.equal(await accountStatus(app, user.token), 401)
  })

  t.test('two calls at once are one warm-up', async t => {
    const env = await newEnv(t)
    const { storage, queries, read, release } = await heldStore(env)
    const app = await build(t, { env, storage })
    await signUp(app)
    const calls = [warmUp(app), warmUp(app)]
    await read
    calls.push(warmUp(app))
    // Requests of tests start in turn: this one has started last.
    await app.inject('/health')
    release()
    const results = await Promise.all(calls)
    for (const result of results) t.strictSame(result, results[0])
    t.equal(queries(), 2, 'the page of sessions, and the empty one after it')
  })

  t.test('what cannot be used is not loaded: disabled users, idle and expired sessions', async t => {
    const env = { ...(await newEnv(t)), SESSION_LIFETIME: '10h', SESSION_IDLE: '1h' }
    const clock = manualClock()
    const first = await build(t, { env, clock: clock.now })
    const idle = await signUp(first)
    clock.advance(3_500_000)
    const active = await signUp(first)
    const disabled = await signUp(first)
    await updateUser(first, disabled.id, { disabled: true })
    await updateUser(first, disabled.id, { disabled: false })
    t.equal((await signIn(first, disabled.email, PASSWORD)).statusCode, 200)
    await updateUser(first, disabled.id, { disabled: true })
    const impersonation = await first.inject({
      method: 'POST',
      url: `/admin/users/${active.id}/impersonate`,
      headers: asAdmin,
    })
    clock.advance(200_000)
    await first.close()
    const app = await build(t, { env, clock: clock.now })
    t.match(await warmUp(app), { loaded: 2 }, 'the active session and the impersonated one')
    const { misses } = await cacheCounts(app)
    t.equal(await accountStatus(app, active.token), 200)
    t.equal(await accountStatus(app, impersonation.json().accessToken), 200)
    t.equal((await cacheCounts(app)).misses, misses)
    t.equal(await accountStatus(app, idle.token), 401)
    t.equal(await accountStatus(app, disabled.token), 401)
    clock.advance(3_600_000)
    t.equal(await accountStatus(app, active.token), 401, 'a loaded session ends like every other')
  })

  t.test('WARM_UP=on: the instance is ready when its cache is filled', async t => {
    const { users, env, app: first } = await restarted(t, 3)
    await first.close()
    const { storage, read, release } = await heldStore(env)
    const app = await build(t, { env: { ...env, WARM_UP: 'on' }, storage })
    await read
    const waiting = await app.inject('/ready')
    t.equal(waiting.statusCode, 503)
    t.equal(waiting.headers['retry-after'], '1')
    t.match(waiting.json(), { errors: { global: ['This instance is filling its cache'] } })
    t.equal(await accountStatus(app, users[0]?.token ?? ''), 200, 'it serves requests')
    release()
    const status = async () => (await app.inject('/ready')).statusCode
    t.equal(await until(status, code => code === 200, DEADLINE), 200)
    const { misses, entries } = await cacheCounts(app)
    t.equal(entries, 3)
    for (const { token } of users) t.equal(await accountStatus(app, token), 200)
    t.equal((await cacheCounts(app)).misses, misses)
  })

  t.test('WARM_UP=on: a failure is logged, and the instance becomes ready', async t => {
    const env = await newEnv(t)
    const { storage, read, fail } = await heldStore(env)
    const { stream, text } = logCapture()
    const app = await build(t, { env: { ...env, WARM_UP: 'on' }, storage, logStream: stream })
    await read
    fail(new Error('the query was cancelled'))
    const status = async () => (await app.inject('/ready')).statusCode
    t.equal(await until(status, code => code === 200, DEADLINE), 200)
    t.match(text(), /"level":40.*the query was cancelled.*the token cache could not be filled/)
  })

  t.test('a stop ends the warm-up', async t => {
    const env = await newEnv(t)
    const { storage, read, release } = await heldStore(env)
    const app = await build(t, { env: { ...env, WARM_UP: 'on' }, storage })
    await read
    const closed = app.close()
    release()
    await closed
  })

  t.test('revocations during warm-ups, at random times', async t => {
    const { app, users } = await restarted(t, 60)
    const { next } = createRandom(Number(process.env.SEED ?? Date.now() % 2 ** 31))
    const revocations = Object.values(REVOCATIONS)
    const ended = new Set<SignedUp>()
    let isOver = false
    const warming = (async () => {
      while (!isOver) await warmUp(app)
    })()
    try {
      for (const user of users.slice(0, 50)) {
        const revoke = revocations[Math.floor(next() * revocations.length)]
        const statusCode = (await revoke?.(app, user))?.statusCode ?? 0
        t.ok(statusCode < 300)
        ended.add(user)
        for (const each of ended) if ((await accountStatus(app, each.token)) !== 401) t.fail(each.id)
      }
    } finally {
      isOver = true
      await warming
    }
    await warmUp(app)
    for (const user of users) t.equal(await accountStatus(app, user.token), ended.has(user) ? 401 : 200)
  })
})

t.test('EdDSA tokens are loaded; ES256 tokens cannot be', async t => {
  for (const algorithm of ['EdDSA', 'ES256'] as const) {
    const env = {
      DATABASE_URL: await newFile(t),
      JWT_ALGORITHM: algorithm,
      JWT_PRIVATE_KEY: newPem(algorithm),
    }
    const first = await build(t, { env })
    const { token } = await signUp(first)
    await first.close()
    const app = await build(t, { env })
    const loaded = algorithm === 'EdDSA' ? 1 : 0
    t.match(await warmUp(app), { loaded })
    const { misses } = await cacheCounts(app)
    t.equal(await accountStatus(app, token), 200)
    t.equal((await cacheCounts(app)).misses - misses, 1 - loaded, algorithm)
  }
})
