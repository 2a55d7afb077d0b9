/** `DATABASE_READ_URL`: lists from a streaming replica whose lag is bounded; what decides, from the primary (docs/design.md, "Storage"). */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import {
  type PostgresServer,
  REPLICATION,
  startPostgres,
  startStandby,
} from '../../scripts/postgres-server.ts'
import {
  accountStatus,
  asAdmin,
  bearer,
  build,
  freshEmail,
  JWT_SECRET,
  logCapture,
  PASSWORD,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { loadConfig } from '../support/config.ts'
import { readMetrics } from '../support/metrics.ts'
import { query } from '../support/postgres.ts'
import { createProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

t.jobs = 2

/** Milliseconds: a generous bound for polling. */
const BOUND = 30_000

const settings = REPLICATION

const start = async (t: Test): Promise<PostgresServer> => {
  const server = await startPostgres({ settings })
  t.teardown(() => server.stop())
  return server
}

const startReplica = async (t: Test, primary: PostgresServer): Promise<PostgresServer> => {
  const replica = await startStandby(primary, { settings })
  t.teardown(() => replica.stop())
  return replica
}

/** A URL of several servers with the same user, password and database. */
const urlOf = (first: string, ...others: string[]): string => {
  const { host } = new URL(first)
  return first.replace(host, [host, ...others.map(other => new URL(other).host)].join(','))
}

interface Status {
  readonly inUse: boolean
  readonly lag: number | null
  readonly problem: string | null
}

const replicaOf = async (app: FastifyInstance): Promise<Status> =>
  (await app.inject({ url: '/admin/status', headers: asAdmin })).json().replica

const onceInUse = (app: FastifyInstance): Promise<Status> =>
  until(
    () => replicaOf(app),
    ({ inUse, problem }) => inUse && problem === null,
    BOUND,
  )

const onceProblem = (app: FastifyInstance, problem: RegExp): Promise<Status> =>
  until(
    () => replicaOf(app),
    status => problem.test(status.problem ?? ''),
    BOUND,
  )

const get = (app: FastifyInstance, url: string): Promise<LightMyRequestResponse> =>
  app.inject({ url, headers: asAdmin })

const namesOf = (response: LightMyRequestResponse): (string | null)[] =>
  response.json().results.map(({ firstName }: { firstName: string | null }) => firstName)

/** From now on the replica stays as it is. */
const pause = async ({ url }: PostgresServer): Promise<void> => {
  await query(url, 'SELECT pg_wal_replay_pause()')
  const isPaused = async () =>
    (await query(url, 'SELECT pg_get_wal_replay_pause_state() AS state'))[0]?.state === 'paused'
  await until(isPaused, Boolean, BOUND)
}

const resume = ({ url }: PostgresServer) => query(url, 'SELECT pg_wal_replay_resume()')

const readsOf = async (app: FastifyInstance, server: string): Promise<number> =>
  (await readMetrics(app)).sum('gatehouse_replica_reads_total', { server })

t.test(
  'lists, counts, exports and event pages come from the replica, what decides from the primary',
  async t => {
    const primary = await start(t)
    const replica = await startReplica(t, primary)
    let sent = ''
    const proxy = await createProxy(t, replica.url, chunk => {
      sent += chunk.toString('latin1')
    })
    const app = await build(t, {
      env: { DATABASE_URL: primary.url, DATABASE_READ_URL: proxy.url, DATABASE_READ_MAX_LAG: '1h' },
    })
    const user = await signUp(app, { firstName: 'Before' })
    const other = await signUp(app)
    await onceInUse(app)
    const list = () => get(app, `/admin/users?search=${user.email}`)
    await until(list, response => namesOf(response)[0] === 'Before', BOUND)
    await until(
      () => get(app, '/admin/events?type=user.signed-up'),
      response => response.json().results.length === 2,
      BOUND,
    )

    await pause(replica)
    const before = await readsOf(app, 'primary')
    t.equal((await updateUser(app, user.id, { firstName: 'After' })).statusCode, 200)
    const added = await signUp(app)
    t.strictSame(namesOf(await list()), ['Before'], 'a list')
    t.equal((await get(app, '/admin/users?count=true')).json().total, 2, 'a count')
    const profiles = await app.inject({ url: '/users?search=before', headers: bearer(user.token) })
    t.strictSame(namesOf(profiles), ['Before'], 'the list for users')
    t.notMatch((await get(app, '/admin/users/export')).body, /After/, 'an export')
    t.equal(
      (await get(app, '/admin/events?type=user.signed-up')).json().results.length,
      2,
      'a page of events',
    )
    t.equal(await readsOf(app, 'primary'), before, 'none from the primary')

    t.equal((await get(app, `/admin/users/${user.id}`)).json().firstName, 'After', 'a user')
    t.strictSame(namesOf(await get(app, `/admin/users?ids=${user.id}`)), ['After'], 'users by ids')
    t.strictSame(namesOf(await get(app, `/admin/users?email=${user.email}`)), ['After'], 'a user by e-mail')
    const feed = await get(app, '/admin/events?type=user.signed-up&sort=at')
    t.equal(feed.json().results.length, 3, 'the events by position')
    t.equal(await accountStatus(app, added.token), 200, 'a new session is accepted')
    t.equal((await signIn(app, added.email)).statusCode, 200)
    t.equal((await updateUser(app, other.id, { disabled: true })).statusCode, 200)
    t.equal(await accountStatus(app, other.token), 401, 'a revoked session is not')
    t.equal((await signIn(app, other.email)).statusCode, 403)
    t.notMatch(sent, /sessions|api_keys|admin_keys|email_tokens/, 'the replica is asked about no credential')
    t.match(sent, /users/, 'the statements are recorded')

    await resume(replica)
    t.strictSame(namesOf(await until(list, response => namesOf(response)[0] === 'After', BOUND)), ['After'])
  },
)

t.test(
  'a list is never older than DATABASE_READ_MAX_LAG: the primary serves while the replica is',
  async t => {
    const primary = await start(t)
    const replica = await startReplica(t, primary)
    const maxLag = 500
    const { stream, records } = logCapture()
    const app = await build(t, {
      logStream: stream,
      env: {
        DATABASE_URL: primary.url,
        DATABASE_READ_URL: replica.url,
        DATABASE_READ_MAX_LAG: `${maxLag}ms`,
      },
    })
    const user = await signUp(app, { firstName: 'name0' })
    const list = () => get(app, '/admin/users')
    // Until the replica serves, again after a pause on a busy machine.
    const fromReplica = async (): Promise<boolean> => {
      const before = await readsOf(app, 'replica')
      await list()
      return (await readsOf(app, 'replica')) > before
    }
    for (let round = 1; round <= 3; round += 1) {
      t.ok(await until(fromReplica, Boolean, BOUND), 'the replica serves')
      await pause(replica)
      const name = `name${round}`
      t.equal((await updateUser(app, user.id, { firstName: name })).statusCode, 200)
      const acknowledgedAt = performance.now()
      const isOld = async (): Promise<boolean> => {
        const requestedAt = performance.now()
        const [found] = namesOf(await list())
        if (found !== name && requestedAt - acknowledgedAt > maxLag)
          t.fail(`a list was ${requestedAt - acknowledgedAt} ms behind`)
        return found !== name
      }
      t.notOk(await until(isOld, old => !old, BOUND), 'the primary serves')
      t.match(
        (await onceProblem(app, /ms old/)).problem,
        /its data may be \d+ ms old, DATABASE_READ_MAX_LAG is 500 ms/,
      )
      await resume(replica)
    }
    t.ok((await onceInUse(app)).lag !== null)
    t.ok((await readsOf(app, 'primary')) > 0)
    const metrics = await readMetrics(app)
    t.equal(metrics.sum('gatehouse_replica_in_use'), 1)
    t.ok(metrics.sum('gatehouse_replica_lag_seconds') >= 0)
    const warnings = records().filter(({ msg }) => String(msg).startsWith('DATABASE_READ_URL: '))
    t.equal(warnings.length, 1, 'one message a minute')
    t.match(warnings[0]?.msg, /the primary serves lists, as 127\.0\.0\.1:\d+ is not used: its data may be/)
  },
)

t.test('without a usable replica every list is served, from the start on', async t => {
  const primary = await start(t)
  const replica = await startReplica(t, primary)
  const proxy = await createProxy(t, replica.url)
  proxy.set('refuse')
  const { stream, records } = logCapture()
  const app = await build(t, {
    logStream: stream,
    env: { DATABASE_URL: primary.url, DATABASE_READ_URL: proxy.url },
  })
  await signUp(app)
  const urls = ['/admin/users?count=true', '/admin/users/export', '/admin/events']
  const statuses: number[] = []
  const lists = async (): Promise<void> => {
    for (const response of await Promise.all(urls.map(url => get(app, url))))
      statuses.push(response.statusCode)
  }
  await lists()
  await onceProblem(app, /Connection terminated|ECONN/)
  await lists()
  proxy.set('none')
  await onceInUse(app)
  await lists()
  proxy.set('silent')
  await lists()
  await onceProblem(app, /./)
  await lists()
  proxy.set('none')
  await onceInUse(app)
  const busy = Array.from({ length: 20 }, lists)
  await replica.kill()
  await Promise.all(busy)
  await lists()
  t.strictSame([...new Set(statuses)], [200])
  t.match(
    records()
      .map(({ msg }) => msg)
      .filter(msg => /DATABASE_READ_URL|replica/.test(String(msg))),
    [
      /^DATABASE_READ_URL: the primary serves lists, as 127\.0\.0\.1:\d+ is not used/,
      /read from the replica/,
    ],
  )
})

t.test('a server with other data is refused with the reason, the primary itself is not', async t => {
  const primary = await start(t)
  const stranger = await start(t)
  const replica = await startReplica(t, primary)
  await query(primary.url, 'CREATE DATABASE other')
  const buildWith = (url: string): Promise<FastifyInstance> =>
    build(t, { env: { DATABASE_URL: primary.url, DATABASE_READ_URL: url } })

  const itself = await buildWith(primary.url)
  await signUp(itself)
  t.match(await onceInUse(itself), { inUse: true, problem: null })
  const cases: [url: string, problem: RegExp][] = [
    [stranger.url, /it is another database cluster: its system identifier is \d+, the primary's \d+/],
    [primary.url.replace(/postgres$/, 'other'), /it is another database of the same cluster/],
  ]
  for (const [url, problem] of cases) {
    const app = await buildWith(url)
    t.match(await onceProblem(app, problem), { inUse: false, lag: null, problem })
    t.equal((await get(app, '/admin/users?count=true')).json().total, 1, 'the primary serves')
    t.equal(await readsOf(app, 'replica'), 0)
  }

  const app = await buildWith(
    urlOf(stranger.url, replica.url).replace(/:[^:@]*@/, `:${new URL(replica.url).password}@`),
  )
  t.match(await onceInUse(app), { inUse: true }, 'of several servers the replica is found')
  await query(replica.url, 'SELECT pg_promote()')
  await query(replica.url, `UPDATE users SET first_name = 'Divergent'`)
  t.match(await onceProblem(app, /it takes writes itself|authentication/), { inUse: false })
  t.strictSame(namesOf(await get(app, '/admin/users')), [null])
})

t.test(
  'after a failover the promoted server serves, and a replica of the former primary does not',
  async t => {
    const primary = await start(t)
    const standby = await startReplica(t, primary)
    const left = await startReplica(t, primary)
    const DATABASE_URL = urlOf(primary.url, standby.url)
    const app = await build(t, { env: { DATABASE_URL, DATABASE_READ_URL: left.url } })
    const both = await build(t, { env: { DATABASE_URL, DATABASE_READ_URL: DATABASE_URL } })
    await signUp(app)
    await Promise.all([onceInUse(app), onceInUse(both)])
    const isThere = async () => (await query(standby.url, 'SELECT 1 FROM users').catch(() => [])).length === 1
    t.ok(await until(isThere, Boolean, BOUND), 'replicated')

    await primary.kill()
    await query(standby.url, 'SELECT pg_promote()')
    const { problem } = await until(
      () => get(app, '/admin/status'),
      response => /timeline/.test(response.json().replica?.problem ?? ''),
      BOUND,
    ).then(response => response.json().replica)
    t.match(problem, /it is on timeline 1, the primary on 2/)
    const email = freshEmail()
    const payload = { email, password: PASSWORD }
    t.equal((await app.inject({ method: 'POST', url: '/account/sign-up', payload })).statusCode, 201)
    t.equal((await get(app, '/admin/users?count=true')).json().total, 2)
    const served = async () =>
      (await get(both, '/admin/users')).statusCode === 200 ? readsOf(both, 'replica') : 0
    const before = await served()
    t.ok((await until(served, reads => reads > before, BOUND)) > before, 'the promoted server serves lists')
  },
)

t.test('the setting is checked', async t => {
  const wrong: [env: Record<string, string>, message: RegExp][] = [
    [
      { DATABASE_READ_URL: 'postgres://u:canary@a/db' },
      /DATABASE_READ_URL needs PostgreSQL: SQLite has no replicas, remove it or set DATABASE_URL/,
    ],
    [
      { DATABASE_URL: 'postgres://a/db', DATABASE_READ_URL: 'sqlite:canary.db' },
      /DATABASE_READ_URL must be postgres:\/\/.*: only PostgreSQL has replicas/,
    ],
    [
      {
        DATABASE_URL: 'postgres://a/db',
        DATABASE_READ_URL: 'postgres://canary@a/db?target_session_attrs=any',
      },
      /DATABASE_READ_URL must not have the parameter target_session_attrs/,
    ],
    [
      { DATABASE_URL: 'postgres://a/db', DATABASE_READ_URL: 'postgres://canary@a,,b/db' },
      /DATABASE_READ_URL must name a host before and after each comma/,
    ],
    [{ DATABASE_READ_MAX_LAG: '100ms' }, /DATABASE_READ_MAX_LAG/],
  ]
  for (const [env, message] of wrong) {
    t.throws(() => loadConfig({ JWT_SECRET, ...env }), { message })
    t.throws(() => loadConfig({ JWT_SECRET, ...env }), { message: /^(?!.*canary)/s })
  }
  const { replica } = loadConfig({
    JWT_SECRET,
    DATABASE_URL: 'postgres://a/db',
    DATABASE_READ_URL: 'postgres://b,c/db',
  })
  t.strictSame(replica, { url: 'postgres://b,c/db', maxLag: 1_000 })
})
