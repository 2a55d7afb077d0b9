/** What each metric counts, on both engines (docs/design.md, "Observability"). */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { RATE_LIMITS } from '#core/rate-limits/limits'
import {
  accountStatus,
  asAdmin,
  bearer,
  build as buildOnSqlite,
  freshEmail,
  hasLateFeed,
  logCapture,
  PASSWORD,
  signIn,
  signUp,
  temporaryFolder,
  updateUser,
} from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { smallHashing, times } from '../support/hashing-threads.ts'
import { perAddress } from '../support/limits.ts'
import { growth, type MetricValues, parseMetrics, readMetrics } from '../support/metrics.ts'
import { query } from '../support/postgres.ts'
import { exchange } from '../support/process.ts'
import { until } from '../support/until.ts'

/** Milliseconds until a value that does not come counts as missing. */
const DEADLINE = 10_000

const REQUESTS = 'http_server_request_duration_seconds_count'

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  t.test('every request is counted once, by method, route and status', async t => {
    const app = await build(t, { hasher: quickHashing })
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    const user = await signUp(app)
    const before = await readMetrics(app)
    const requests: [count: number, path: string, init: RequestInit, labels: Record<string, string>][] = [
      [7, '/health', {}, { method: 'GET', route: '/health', status: '200' }],
      [2, '/health', { method: 'HEAD' }, { method: 'HEAD', route: '/health', status: '200' }],
      [5, '/account', { headers: bearer(user.token) }, { method: 'GET', route: '/account', status: '200' }],
      [3, '/account', {}, { method: 'GET', route: '/account', status: '401' }],
      [4, `/${freshEmail()}`, {}, { method: 'GET', route: 'unknown', status: '404' }],
      [1, '/health', { method: 'DELETE' }, { method: 'DELETE', route: 'unknown', status: '405' }],
      [2, '/x', { method: 'PROPFIND' }, { method: 'other', route: 'unknown', status: '404' }],
      [1, '/%zz', {}, { method: 'GET', route: 'unknown', status: '400' }],
      [
        3,
        `/admin/users/${user.id}`,
        { headers: asAdmin },
        { method: 'GET', route: '/admin/users/:id', status: '200' },
      ],
      [
        2,
        '/admin/users/export',
        { headers: asAdmin },
        { method: 'GET', route: '/admin/users/export', status: '200' },
      ],
      [
        1,
        '/account/sign-up',
        { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{' },
        { method: 'POST', route: '/account/sign-up', status: '400' },
      ],
    ]
    let sent = 0
    for (const [count, path, init] of requests)
      for (let request = 0; request < count; request += 1) {
        await (await fetch(url + path, init)).arrayBuffer()
        sent += 1
      }
    const after = await readMetrics(app)
    const grown = growth(before, after)
    for (const [count, path, , labels] of requests) t.equal(grown(REQUESTS, labels), count, path)
    // The first reading of the metrics is counted after it was sent.
    t.equal(grown(REQUESTS), sent + 1, 'all of them')
    t.equal(
      grown('http_server_request_duration_seconds_bucket', { le: '+Inf' }),
      sent + 1,
      'the last bucket has all',
    )
    const seconds = grown('http_server_request_duration_seconds_sum', { route: '/health' })
    t.ok(seconds > 0 && seconds < 5, `${seconds} s`)

    // Nothing of Fastify runs for bytes that are no HTTP.
    await exchange(Number(new URL(url).port), 'nonsense\r\n\r\n')
    t.equal(growth(after, await readMetrics(app))(REQUESTS), 1)
  })

  t.test('a path with and without a slash at its end is one route, counted once', async t => {
    const app = await build(t, {
      extend: app =>
        void app.register(async scope => void scope.get('/', async () => 'x'), { prefix: '/twice' }),
    })
    for (const url of ['/twice', '/twice/']) t.equal((await app.inject(url)).statusCode, 200)
    t.equal((await readMetrics(app)).sum(REQUESTS, { route: '/twice' }), 2)
  })

  t.test('sign-ups and sign-ins are counted by outcome', async t => {
    const app = await build(t, { hasher: quickHashing })
    const before = await readMetrics(app)
    const user = await signUp(app)
    await app.inject({ method: 'POST', url: '/account/sign-up', payload: { ...user, password: PASSWORD } })
    const payload = { email: user.email, password: PASSWORD }
    await app.inject({ method: 'POST', url: '/account/sign-up', payload })
    await signIn(app, user.email)
    await signIn(app, user.email)
    await signIn(app, user.email, 'another long pass phrase')
    await signIn(app, freshEmail())
    await updateUser(app, user.id, { disabled: true })
    await signIn(app, user.email)
    const grown = growth(before, await readMetrics(app))
    t.equal(grown('gatehouse_sign_ups_total', { outcome: 'succeeded' }), 1)
    t.equal(grown('gatehouse_sign_ups_total', { outcome: 'email_taken' }), 1)
    t.equal(grown('gatehouse_sign_ups_total'), 2, 'a body that is not valid is no sign-up')
    t.equal(grown('gatehouse_sign_ins_total', { outcome: 'succeeded' }), 2)
    t.equal(grown('gatehouse_sign_ins_total', { outcome: 'wrong_credentials' }), 2)
    t.equal(grown('gatehouse_sign_ins_total', { outcome: 'account_disabled' }), 1)
    t.equal(grown('gatehouse_sign_ins_total'), 5)
  })

  t.test('with REQUIRE_EMAIL_VERIFICATION, the outcomes are those of the account', async t => {
    const app = await build(t, { env: { REQUIRE_EMAIL_VERIFICATION: 'true' }, hasher: quickHashing })
    const payload = { email: freshEmail(), password: PASSWORD }
    const account = { email: freshEmail(), password: PASSWORD }
    await app.inject({ method: 'POST', url: '/account/sign-up', payload })
    await app.inject({ method: 'POST', url: '/admin/users', headers: asAdmin, payload: account })
    await signIn(app, account.email)
    const values = await readMetrics(app)
    t.equal(values.sum('gatehouse_sign_ups_total', { outcome: 'succeeded' }), 1)
    t.equal(values.sum('gatehouse_sign_ins_total', { outcome: 'email_not_verified' }), 1)
  })

  t.test('rejections by rate limits are counted by limit, those of the login throttle apart', async t => {
    const app = await build(t, {
      env: { RATE_LIMIT: 'on' },
      hasher: quickHashing,
      rateLimits: {
        ...RATE_LIMITS,
        perAddress: perAddress({ mail: 3 }),
        loginThrottle: { freeAttempts: 2, window: 60, initialDelay: 30, maxDelay: 60 },
      },
    })
    const { email } = await signUp(app)
    const forgot = { email: freshEmail() }
    for (let request = 0; request < 5; request += 1)
      await app.inject({ method: 'POST', url: '/account/forgot-password', payload: forgot })
    const statuses: number[] = []
    for (let attempt = 0; attempt < 6; attempt += 1)
      statuses.push((await signIn(app, email, 'a wrong pass phrase')).statusCode)
    const values = await readMetrics(app)
    t.equal(values.sum('gatehouse_rate_limited_requests_total', { limit: 'mail' }), 3)
    t.equal(values.sum('gatehouse_rate_limited_requests_total'), 3)
    const throttled = statuses.filter(status => status === 429).length
    t.ok(throttled > 1)
    t.equal(values.sum('gatehouse_throttled_password_attempts_total'), throttled)
    t.equal(values.sum('gatehouse_sign_ins_total', { outcome: 'throttled' }), throttled)
    t.equal(values.sum('gatehouse_throttled_accounts_total'), 1, 'one account, once a minute')
  })

  t.test('the token cache counts hits and misses', async t => {
    const app = await build(t, { hasher: quickHashing })
    const { token } = await signUp(app)
    const isWarm = async () => (await readMetrics(app)).sum('gatehouse_token_cache_entries') === 1
    // On PostgreSQL nothing is cached before the invalidation feed is connected.
    const warmed = await until(
      async () => (await accountStatus(app, token)) === 200 && isWarm(),
      Boolean,
      DEADLINE,
    )
    t.ok(warmed)
    const before = await readMetrics(app)
    for (let request = 0; request < 3; request += 1) await accountStatus(app, token)
    await accountStatus(app, 'not.a.token')
    const grown = growth(before, await readMetrics(app))
    t.equal(grown('gatehouse_token_cache_hits_total'), 3)
    t.equal(grown('gatehouse_token_cache_misses_total'), 1)
    t.equal(grown('gatehouse_token_cache_evictions_total'), 0)
  })

  t.test('written last requests are counted', async t => {
    const requestOnce = async () => {
      const log = logCapture()
      const app = await build(t, { hasher: quickHashing, logStream: log.stream })
      const { token } = await signUp(app)
      await accountStatus(app, token)
      const flushed = await until(
        () => readMetrics(app),
        values => values.sum('gatehouse_last_request_flush_rows_total') > 0,
        DEADLINE,
      )
      return { flushed, hasLateFeed: hasLateFeed(log.records()) }
    }
    // While the feed is late, a request is looked up twice, and noted for either principal.
    const { flushed } = await until(requestOnce, ({ hasLateFeed }) => !hasLateFeed, DEADLINE)
    t.equal(flushed.sum('gatehouse_last_request_flush_rows_total'), 1, 'the user; the session is new')
    t.equal(flushed.sum('gatehouse_last_request_flush_seconds_count'), 1, 'flushes without rows do not count')
    t.equal(flushed.sum('gatehouse_last_request_flush_failures_total'), 0)
  })

  t.test('mails: sent, waiting, and those that cannot be sent', async t => {
    const app = await build(t, { hasher: quickHashing })
    await signUp(app)
    const sent = await until(
      () => readMetrics(app),
      values => values.sum('gatehouse_mails_sent_total') === 1,
      DEADLINE,
    )
    t.equal(sent.sum('gatehouse_mails_sent_total'), 1)
    t.equal(sent.sum('gatehouse_mails_waiting'), 0)

    // Nothing listens at port 1.
    const unable = await build(t, { env: { MAIL_URL: 'smtp://127.0.0.1:1' }, hasher: quickHashing })
    await signUp(unable)
    const retried = await until(
      () => readMetrics(unable),
      values => values.sum('gatehouse_mail_retries_total') > 0,
      DEADLINE,
    )
    t.equal(retried.sum('gatehouse_mail_retries_total'), 1)
    t.equal(retried.sum('gatehouse_mails_waiting'), 1)
    t.equal(retried.sum('gatehouse_mails_sent_total'), 0)

    const off = await build(t, { env: { MAIL_URL: 'off' } })
    t.notMatch((await readMetrics(off)).text, 'gatehouse_mail', 'no mails, no metrics')
  })

  t.test('hashing: running, waiting, waited, rejected', async t => {
    // So many that they take longer than reading the metrics.
    const waiting = 40
    const hasher = smallHashing(t, { maxWaiting: waiting })
    const app = await build(t, { hasher })
    const signUps = times(1 + waiting + 2, () =>
      app.inject({
        method: 'POST',
        url: '/account/sign-up',
        payload: { email: freshEmail(), password: PASSWORD },
      }),
    )
    const lane = { lane: 'ordinary' }
    const full = await until(
      () => readMetrics(app),
      values => values.sum('gatehouse_hashing_rejected_total', lane) === 2,
      DEADLINE,
    )
    t.equal(full.sum('gatehouse_hashing_running', lane), 1)
    const queued = full.sum('gatehouse_hashing_waiting', lane)
    t.ok(queued > 0 && queued <= waiting, `${queued} waiting`)
    const statuses = (await Promise.all(signUps)).map(({ statusCode }) => statusCode)
    t.equal(statuses.filter(status => status === 503).length, 2)
    const values = await readMetrics(app)
    t.equal(values.sum('gatehouse_hashing_rejected_total', lane), 2)
    t.equal(values.sum('gatehouse_hashing_running', lane), 0)
    t.equal(values.sum('gatehouse_hashing_waiting', lane), 0)
    t.equal(values.sum('gatehouse_hashing_wait_seconds_count', lane), 1 + waiting)
    t.ok(values.sum('gatehouse_hashing_wait_seconds_sum', lane) > 0.1, 'they waited for the thread')
    t.equal(values.sum('gatehouse_hashing_wait_seconds_count', { lane: 'expensive' }), 0)
    t.equal(values.sum('gatehouse_sign_ups_total', { outcome: 'overloaded' }), 2)
  })

  t.test('no label contains what a client sent', async t => {
    const database = await newDatabase(t)
    const app = await build(t, { env: { DATABASE_URL: database }, hasher: quickHashing })
    const user = await signUp(app, { email: 'canary.address@example.com', firstName: 'Canaryname' })
    await signIn(app, user.email)
    await signIn(app, 'canary.nobody@example.com')
    await accountStatus(app, user.token)
    for (const url of [
      `/admin/users/${user.id}`,
      `/canary-path/${user.token}`,
      '/users?cursor=canary-cursor',
    ])
      await app.inject({ url, headers: { ...asAdmin, ...bearer(user.token) } })
    const { text, series } = await readMetrics(app)
    for (const secret of [user.id, user.token, 'canary', 'Canary', '@', 'Bearer', database])
      t.notOk(text.includes(secret), secret)
    const routes = new Set(['unknown', ...app.routeTable.map(({ url }) => url)])
    const labelled = series.map(({ labels }) => labels.route).filter(route => route !== undefined)
    t.same(
      labelled.filter(route => !routes.has(route)),
      [],
      'routes are templates',
    )
  })

  t.test('GET /admin/metrics needs the admin key, and is text', async t => {
    const app = await build(t)
    t.equal((await app.inject('/admin/metrics')).statusCode, 401)
    const { headers, body } = await app.inject({ url: '/admin/metrics', headers: asAdmin })
    t.equal(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
    t.equal(headers['cache-control'], 'no-store')
    t.match(parseMetrics(body).types.get('gatehouse_sign_ins_total'), 'counter')
  })
})

t.test('PostgreSQL: an interruption of the invalidation feed is counted', async t => {
  await onEnginesOfRun(t, async (t, { name, build, newDatabase }) => {
    if (name === 'sqlite') return
    const url = await newDatabase(t)
    const app = await build(t, { env: { DATABASE_URL: url } })
    const isConnected = (values: MetricValues) => values.sum('gatehouse_invalidation_feed_connected') === 1
    const connected = await until(() => readMetrics(app), isConnected, DEADLINE)
    t.ok(isConnected(connected))
    t.ok(connected.sum('gatehouse_invalidation_lag_seconds') < 5)
    const before = connected.sum('gatehouse_invalidation_interruptions_total')
    await query(
      url,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND query ~ 'LISTEN|pg_listening_channels' AND pid <> pg_backend_pid()`,
    )
    const interrupted = await until(
      () => readMetrics(app),
      values => values.sum('gatehouse_invalidation_interruptions_total') > before,
      DEADLINE,
    )
    t.ok(interrupted.sum('gatehouse_invalidation_interruptions_total') > before)
    t.ok(isConnected(await until(() => readMetrics(app), isConnected, DEADLINE)), 'it is connected again')
  })
})

t.test('SQLite: gatehouse_store_up is 0 while the database file is missing', async t => {
  const file = join(temporaryFolder(t), 'test.db')
  const app = await buildOnSqlite(t, { env: { DATABASE_URL: `sqlite:${file}` } })
  t.equal((await readMetrics(app)).sum('gatehouse_store_up'), 1)
  rmSync(file)
  const down = await until(
    () => readMetrics(app),
    values => values.sum('gatehouse_store_up') === 0,
    DEADLINE,
  )
  t.equal(down.sum('gatehouse_store_up'), 0)
})

await onEnginesOfRun(t, async (t, { name: engine, build }) => {
  t.test('the store, the process and the build', async t => {
    const app = await build(t)
    await signUp(app)
    const values = await readMetrics(app)
    t.equal(values.sum('gatehouse_store_up'), 1)
    t.equal(values.sum('gatehouse_build_info', { engine }), 1)
    t.ok(values.sum('process_resident_memory_bytes') > 10_000_000)
    t.ok(values.sum('process_cpu_seconds_total') > 0)
    t.ok(Math.abs(values.sum('process_start_time_seconds') - Date.now() / 1_000) < 3_600)
    const delays = await until(
      () => readMetrics(app),
      values => values.sum('gatehouse_event_loop_delay_seconds_count') > 0,
      DEADLINE,
    )
    t.ok(delays.sum('gatehouse_event_loop_delay_seconds_count') > 0)
    if (engine === 'sqlite') {
      t.ok(values.sum('gatehouse_sqlite_writer_batch_size_count') > 0)
      t.ok(values.sum('gatehouse_sqlite_writer_commit_seconds_count') > 0)
      t.equal(values.sum('gatehouse_sqlite_writer_waiting'), 0)
      t.notMatch(values.text, 'gatehouse_postgres', 'only the metrics of the engine')
    } else {
      t.equal(values.sum('gatehouse_postgres_pool_in_use'), 0)
      t.equal(values.sum('gatehouse_postgres_pool_waiting'), 0)
      t.notMatch(values.text, 'gatehouse_sqlite', 'only the metrics of the engine')
    }
  })
})
