/**
 * A database that is down, silent or slow: 503 in bounded time, no revoked session accepted, automatic recovery (docs/design.md, "Errors",
 * §7).
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import pg from 'pg'
import t, { type Test } from 'tap'
import { withInvalidationLog } from '#core/auth/invalidation-log'
import { API_KEY_PREFIX, newOpaqueKey } from '#core/auth/opaque-key'
import { openPostgresStorage } from '#core/store/postgres'
import { CHANNEL } from '#storage/postgres/database'
import { InvalidationFeed } from '#storage/postgres/invalidation-feed'
import { PrimaryServer } from '#storage/postgres/primary-server'
import { ProcessLeases } from '#storage/postgres/process-leases'
import type { AppOptions } from '../../src/app.ts'
import {
  asAdmin,
  bearer,
  build,
  freshEmail,
  logCapture,
  manualClock,
  PASSWORD,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { HeldHashing } from '../support/fake-hashing.ts'
import { newDatabase, query } from '../support/postgres.ts'
import { createProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

t.jobs = 3

/** Milliseconds: the longest wait for the database, and the time after which caches are bypassed. */
const BOUND = 13_000
const DISTRUST = 1_000

const UNAVAILABLE = { errors: { global: ['The database is not available, try again'] } }

const setUp = async (t: Test, env: Record<string, string> = {}, options: AppOptions = {}) => {
  const direct = await newDatabase(t)
  const proxy = await createProxy(t, direct)
  const app = await build(t, { ...options, env: { DATABASE_URL: proxy.url, LOG_LEVEL: 'silent', ...env } })
  return { app, proxy, direct }
}

const account = (app: FastifyInstance, token: string): Promise<LightMyRequestResponse> =>
  app.inject({ url: '/account', headers: bearer(token) })

const isUnavailable = (t: Test, response: LightMyRequestResponse, what: string): void => {
  t.equal(response.statusCode, 503, what)
  t.strictSame(response.json(), UNAVAILABLE, what)
  t.ok(Number(response.headers['retry-after']) >= 1, `${what}: Retry-After`)
}

/** Polls until the expected status. @returns the last status. There is no assertion on how soon. */
const statusOnce = async (ask: () => Promise<LightMyRequestResponse>, status: number): Promise<number> =>
  (await until(ask, ({ statusCode }) => statusCode === status, BOUND)).statusCode

t.test(
  'while the database is down every route but health is 503, and the service recovers by itself',
  async t => {
    const { app, proxy } = await setUp(t)
    const { email, token } = await signUp(app)
    t.equal((await account(app, token)).statusCode, 200)
    proxy.set('refuse')
    proxy.cut()
    isUnavailable(t, await signIn(app, email), 'a sign-in, never a wrong password')
    const payload = { email: freshEmail(), password: PASSWORD }
    isUnavailable(t, await app.inject({ method: 'POST', url: '/account/sign-up', payload }), 'a sign-up')
    isUnavailable(t, await app.inject({ url: '/admin/users', headers: asAdmin }), 'a list')
    t.equal(await statusOnce(() => account(app, token), 503), 503, 'the cache is no longer used')
    const headers = { cookie: `ACCESS_TOKEN=${token}`, accept: 'application/json' }
    for (const url of ['/security', '/security/password', '/security/api-keys'])
      isUnavailable(t, await app.inject({ url, headers }), url)
    t.equal((await app.inject('/ready')).statusCode, 503)
    t.equal((await app.inject('/health')).statusCode, 200)
    t.equal((await account(app, 'not.a.token')).statusCode, 401, 'a forgery needs no database')
    proxy.set('none')
    t.equal(await statusOnce(() => account(app, token), 200), 200)
    t.equal(await statusOnce(() => app.inject('/ready'), 200), 200)
    t.equal((await signIn(app, email)).statusCode, 200)
  },
)

t.test(
  'while the database is silent, sessions that may be revoked are rejected, in bounded time',
  async t => {
    const { app, proxy, direct } = await setUp(t)
    const other = await build(t, { env: { DATABASE_URL: direct, LOG_LEVEL: 'silent' } })
    const { id, token } = await signUp(app)
    t.equal(await statusOnce(() => account(app, token), 200), 200)
    proxy.set('silent')
    t.equal((await updateUser(other, id, { disabled: true })).statusCode, 200)
    await sleep(DISTRUST)
    const response = await account(app, token)
    t.not(response.statusCode, 200, 'not from memory')
    isUnavailable(t, response, 'not for ever')
    proxy.set('none')
    t.equal(
      await statusOnce(() => account(app, token), 401),
      401,
      'what happened meanwhile is known afterwards',
    )
  },
)

t.test('late invalidations are logged', async t => {
  const log = logCapture()
  const direct = await newDatabase(t)
  const proxy = await createProxy(t, direct)
  await build(t, { env: { DATABASE_URL: proxy.url }, logStream: log.stream })
  const warnings = () => log.records().filter(({ msg }) => /received late/.test(String(msg)))
  // It listens once its first heartbeat has come back; the second one is sent after that.
  const heartbeats = new Set<unknown>()
  const sent = `SELECT query_start::text FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%pg_listening_channels()%'`
  await until(
    async () => {
      for (const row of await query(direct, sent)) heartbeats.add(row.query_start)
      return heartbeats.size
    },
    size => size >= 2,
    BOUND,
  )
  proxy.set('slow')
  await until(
    () => warnings().length,
    count => count > 0,
    BOUND,
  )
  t.match(warnings(), [{ level: 40 }])
})

t.test('a heartbeat comes back after the changes that were committed before it was sent', async t => {
  const url = await newDatabase(t)
  const writer = new pg.Client({ connectionString: url })
  const received: string[] = []
  const leases = new ProcessLeases(async () => [])
  const feed = new InvalidationFeed(await PrimaryServer.open(url), leases)
  t.teardown(async () => {
    await feed.close()
    await writer.end()
  })
  await writer.connect()
  // Milliseconds since the last heartbeat that came back was sent.
  const age = () => (feed.statistics.lag ?? Number.POSITIVE_INFINITY) * 1_000
  feed.subscribe({
    invalidate: id => void received.push(id),
    invalidateAll: () => undefined,
    setFeedConnected: () => undefined,
    setFeedLate: () => undefined,
    closed: () => undefined,
  })
  await until(
    () => feed.statistics.isConnected,
    isConnected => isConnected,
    BOUND,
  )
  for (let round = 0; round < 20; round += 1) {
    const committed = performance.now()
    await writer.query(`NOTIFY ${CHANNEL}, '${round}'`)
    const acknowledged = performance.now()
    await until(age, current => performance.now() - current > acknowledged, BOUND)
    t.equal(received.at(-1), String(round), `${performance.now() - committed} ms later`)
  }
})

t.test('repeatedly late invalidations are logged once a minute', async t => {
  const clock = manualClock()
  const messages: string[] = []
  const log = (message: string) => void messages.push(message)
  const passed: unknown[] = []
  const { setFeedLate, setFeedConnected, closed } = withInvalidationLog(
    {
      invalidate: () => undefined,
      invalidateAll: () => undefined,
      setFeedLate: isLate => passed.push(isLate),
      setFeedConnected: isConnected => passed.push({ isConnected }),
      closed: () => passed.push('closed'),
    },
    { error: log, warn: log, info: log },
    clock.now,
  )
  for (const isLate of [true, false, true, false]) setFeedLate(isLate)
  t.match(messages, [/received late/])
  clock.advance(60_000)
  setFeedLate(true)
  for (const isConnected of [false, false, true, false]) setFeedConnected(isConnected)
  closed()
  t.match(messages, [/received late/, /received late/, /not received/, /not received/])
  t.equal(messages.length, 4, 'closing is not logged')
  t.strictSame(passed, [
    true,
    false,
    true,
    false,
    true,
    ...[false, false, true, false].map(isConnected => ({ isConnected })),
    'closed',
  ])
})

t.test('an instance that stops normally logs no warning', async t => {
  const log = logCapture()
  const env = { DATABASE_URL: await newDatabase(t) }
  const app = await build(t, { env, logStream: log.stream })
  const { token } = await signUp(app)
  t.equal((await account(app, token)).statusCode, 200)
  await app.close()
  t.strictSame(log.problems(), [])
})

t.test('a slow network makes invalidations late, never lost, and none is missed', async t => {
  const direct = await newDatabase(t)
  const proxy = await createProxy(t, direct)
  const storage = await openPostgresStorage(proxy.url, 2)
  t.teardown(() => storage.close())
  const notifications: unknown[] = []
  storage.subscribe({
    invalidate: id => notifications.push(id),
    invalidateAll: () => undefined,
    setFeedConnected: isConnected => notifications.push({ isConnected }),
    setFeedLate: isLate => notifications.push({ isLate }),
    closed: () => undefined,
  })
  const hasReceived = (count: number) =>
    until(
      () => notifications.length,
      length => length >= count,
      BOUND,
    )
  await hasReceived(1)
  proxy.set('slow')
  await hasReceived(2)
  // Longer than the silence after which a connection counts as lost.
  await sleep(7_000)
  await query(direct, `SELECT pg_notify('${CHANNEL}', 'ada')`)
  proxy.set('none')
  await hasReceived(4)
  t.strictSame(notifications, [{ isConnected: true }, { isLate: true }, 'ada', { isLate: false }])
})

t.test('requests with invented API keys cannot fill the log while the database is down', async t => {
  const log = logCapture()
  const clock = manualClock(Date.now())
  const { app, proxy } = await setUp(t, { LOG_LEVEL: 'info' }, { logStream: log.stream, clock: clock.now })
  proxy.set('refuse')
  proxy.cut()
  for (let round = 0; round < 50; round += 1)
    isUnavailable(t, await account(app, newOpaqueKey(API_KEY_PREFIX).text), 'an invented key')
  const lines = log.records().filter(({ status }) => status === 503)
  const kinds = new Set(lines.map(({ err }) => (err as { code?: string }).code))
  t.match(lines[0], { level: 50, msg: UNAVAILABLE.errors.global[0], err: { stack: String } })
  t.equal(lines.length, kinds.size, 'one line for each way in which the connection failed')
  t.ok(kinds.size < 5)
})

t.test('a sign-up whose database response was lost is 503; repeated, it has one definite result', async t => {
  const hasher = new HeldHashing()
  const { app, proxy, direct } = await setUp(t, {}, { hasher })
  const payload = { email: freshEmail(), password: PASSWORD }
  const again = async () => app.inject({ method: 'POST', url: '/account/sign-up', payload })
  const first = again()
  while (hasher.begun.length === 0) await sleep(10)
  // Only the write remains: it arrives, but its response is lost.
  proxy.set('no responses')
  hasher.release()
  isUnavailable(t, await first, 'it is not known what became of it')
  const rows = await query(
    direct,
    `SELECT count(*)::int AS users FROM users WHERE email = '${payload.email}'`,
  )
  t.strictSame(rows, [{ users: 1 }], 'it was committed')
  proxy.set('none')
  t.equal(await statusOnce(again, 409), 409)
  t.equal((await signIn(app, payload.email)).statusCode, 200)
})

t.test('a locked database fails by statement timeout, and by connection timeout', async t => {
  const { app, direct } = await setUp(t, { DATABASE_CONNECTIONS: '1' })
  const { email } = await signUp(app)
  const locker = new pg.Client({ connectionString: direct })
  await locker.connect()
  await locker.query('BEGIN; LOCK TABLE users IN ACCESS EXCLUSIVE MODE')
  const responses = await Promise.all([1, 2, 3].map(() => signIn(app, email)))
  for (const response of responses) isUnavailable(t, response, 'a sign-in')
  await locker.query('COMMIT')
  await locker.end()
  t.equal(await statusOnce(() => signIn(app, email), 200), 200)
})

t.test('connections that the server closed fail no request once that is known', async t => {
  const { app, direct } = await setUp(t)
  const { email, token } = await signUp(app)
  await Promise.all([1, 2, 3, 4].map(() => signIn(app, email)))
  for (let round = 0; round < 3; round += 1) {
    await query(
      direct,
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()',
    )
    t.equal(await statusOnce(() => account(app, token), 200), 200)
    t.equal(await statusOnce(() => signIn(app, email), 200), 200)
  }
})

t.test('last requests of an outage are written afterwards', async t => {
  const { app, proxy, direct } = await setUp(t)
  const { id, token } = await signUp(app)
  const timestamp = async () => (await account(app, token)).json().lastRequestAt
  const before = await timestamp()
  proxy.set('refuse')
  proxy.cut()
  await sleep(DISTRUST)
  proxy.set('none')
  t.equal(await statusOnce(() => account(app, token), 200), 200)
  const after = await timestamp()
  t.ok(after > before)
  await app.close()
  const [row] = await query(
    direct,
    `SELECT at FROM last_requests JOIN users ON key = user_key WHERE id = '${id}'`,
  )
  t.equal(Number(row?.at), Date.parse(after))
})
