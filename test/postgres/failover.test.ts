/** Several servers in `DATABASE_URL`: the writable one is found, also after a failover (docs/design.md, "Storage"). */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import { ConfigError } from '#base/settings/readers'
import { schemaOf } from '#core/store/migrations'
import { parseServers } from '#storage/postgres/connection-url'
import { migrate } from '#storage/postgres/migrate'
import { PrimaryServer } from '#storage/postgres/primary-server'
import {
  type PostgresServer,
  REPLICATION,
  startPostgres,
  startStandby,
} from '../../scripts/postgres-server.ts'
import {
  accountStatus,
  bearer,
  build,
  freshEmail,
  JWT_SECRET,
  PASSWORD,
  signUp,
  updateUser,
} from '../support/build.ts'
import { runCli } from '../support/cli.ts'
import { loadConfig } from '../support/config.ts'
import { query } from '../support/postgres.ts'
import { createProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

/** Milliseconds: a generous bound for polling. */
const BOUND = 30_000

const settings = REPLICATION

/** A URL of several servers with the same user, password and database. */
const urlOf = (first: string, ...others: string[]): string => {
  const { host } = new URL(first)
  return first.replace(host, [host, ...others.map(other => new URL(other).host)].join(','))
}

const start = async (t: Test): Promise<PostgresServer> => {
  const server = await startPostgres({ settings })
  t.teardown(() => server.stop())
  return server
}

/** The same server, after setting this password for its superuser. */
const withPassword = async (server: PostgresServer, password: string): Promise<PostgresServer> => {
  await query(server.url, `ALTER ROLE postgres PASSWORD '${password}'`)
  return { ...server, url: server.url.replace(new URL(server.url).password, password) }
}

const startPair = async (t: Test): Promise<readonly [PostgresServer, PostgresServer]> => {
  const primary = await start(t)
  const standby = await startStandby(primary, { settings })
  t.teardown(() => standby.stop())
  return [primary, standby]
}

const setReadOnly = async ({ url }: PostgresServer, readOnly: boolean): Promise<void> => {
  await query(url, `ALTER SYSTEM SET default_transaction_read_only = ${readOnly ? 'on' : 'off'}`)
  await query(url, 'SELECT pg_reload_conf()')
  const text = `SELECT current_setting('default_transaction_read_only') AS setting`
  const isIt = async () => (await query(url, text))[0]?.setting === (readOnly ? 'on' : 'off')
  await until(isIt, Boolean, BOUND)
}

const connectionsTo = async ({ url }: PostgresServer): Promise<number> => {
  const text = `SELECT 1 FROM pg_stat_activity WHERE application_name = 'gatehouse'`
  return (await query(url, text)).length
}

const rename = (app: FastifyInstance, token: string): Promise<LightMyRequestResponse> =>
  app.inject({ method: 'PUT', url: '/account', headers: bearer(token), payload: { firstName: 'Ada' } })

const statusOnce = async (ask: () => Promise<number>, status: number): Promise<number> =>
  until(ask, current => current === status, BOUND)

const signUpStatus = async (app: FastifyInstance): Promise<number> => {
  const payload = { email: freshEmail(), password: PASSWORD }
  return (await app.inject({ method: 'POST', url: '/account/sign-up', payload })).statusCode
}

const serversOf = (url: string) => {
  const { servers, readWrite } = parseServers(url)
  return { readWrite, urls: servers.map(server => server.url) }
}

t.test('a URL may name several servers in libpq syntax', async t => {
  t.strictSame(serversOf('postgres://u:p%40s@a:5433,b,[::1]:1,[fe80::2]/db?sslmode=disable'), {
    readWrite: true,
    urls: [
      'postgres://u:p%40s@a:5433/db?sslmode=disable',
      'postgres://u:p%40s@b:5432/db?sslmode=disable',
      'postgres://u:p%40s@[::1]:1/db?sslmode=disable',
      'postgres://u:p%40s@[fe80::2]:5432/db?sslmode=disable',
    ],
  })
  t.strictSame(
    serversOf('postgresql://u,v@a,b/db?x=1&target_session_attrs=any&y=2'),
    { readWrite: false, urls: ['postgresql://u,v@a:5432/db?x=1&y=2', 'postgresql://u,v@b:5432/db?x=1&y=2'] },
    'a comma in the credentials is none of the list',
  )
  t.strictSame(serversOf('postgres://a,b'), {
    readWrite: true,
    urls: ['postgres://a:5432', 'postgres://b:5432'],
  })
  for (const url of [
    'postgres://a/db',
    'postgres:///db?host=/run/postgresql',
    'postgres://u:p,q@[::1]:5/db#x',
  ])
    t.strictSame(serversOf(url), { readWrite: false, urls: [url] }, 'one server is taken as it is')
  t.equal(parseServers('postgres://a/db?target_session_attrs=read-write').readWrite, true)
})

t.test('errors of such a URL do not quote it', async t => {
  const wrong: [url: string, message: RegExp][] = [
    ['postgres://u:canary@a,,b/db', /must name a host before and after each comma/],
    ['postgres://u:canary@a,:5432/db', /must name a host before and after each comma/],
    ['postgres://u:canary@a,b:0/db', /each port must be a number from 1 to 65535/],
    ['postgres://u:canary@a,b:65536/db', /each port must be a number from 1 to 65535/],
    ['postgres://u:canary@a,b:x/db', /each host must be <name>, <name>:<port> or \[<IPv6>\]:<port>/],
    ['postgres://u:canary@a,::1/db', /must name a host before|each host must be/],
    ['postgres://u:canary@a,[1::2::3]/db', /must be sqlite:.* or postgres:\/\/<user>/],
    ['postgres://u:can/ary@a,b/db', /must be sqlite:.* or postgres:\/\/<user>/],
    [
      'postgres://u:canary@a,b/db?target_session_attrs=standby',
      /target_session_attrs must be any or read-write/,
    ],
    ['postgres://u:canary@a/db?target_session_attrs=', /target_session_attrs must be any or read-write/],
    ['postgres://u:canary@a,b/db?host=c', /must not have the parameters host and port/],
  ]
  for (const [DATABASE_URL, message] of wrong) {
    try {
      loadConfig({ DATABASE_URL, JWT_SECRET })
      t.fail(`${DATABASE_URL} was taken`)
    } catch (error) {
      t.ok(error instanceof ConfigError)
      t.match((error as Error).message, message, DATABASE_URL)
      t.notMatch((error as Error).message, /canary|can\/ary/)
    }
  }
})

t.test('the writable server is used, and another one once it becomes read-only', async t => {
  const one = await start(t)
  const other = await withPassword(await start(t), new URL(one.url).password)
  await migrate(one.url, schemaOf())
  await setReadOnly(one, true)
  const app = await build(t, { env: { DATABASE_URL: urlOf(one.url, other.url) } })
  const { token } = await signUp(app)
  t.equal((await rename(app, token)).statusCode, 200)
  t.equal(await accountStatus(app, token), 200)
  t.equal(await connectionsTo(one), 0, 'the other one has no connection')

  // These two share no data, so the response shows which one authenticated the user.
  await setReadOnly(one, false)
  await setReadOnly(other, true)
  t.equal(
    await statusOnce(() => accountStatus(app, token), 401),
    401,
    'nothing is cached from the former server',
  )
  t.equal(await statusOnce(() => signUpStatus(app), 201), 201)
  t.equal(await connectionsTo(other), 0, 'every connection to it is closed')
  t.equal((await app.inject('/ready')).statusCode, 200)

  const second = await build(t, { env: { DATABASE_URL: urlOf(other.url, one.url) } })
  const user = await signUp(second)
  t.equal(await statusOnce(() => accountStatus(app, user.token), 200), 200)
  t.equal((await updateUser(second, user.id, { disabled: true })).statusCode, 200)
  t.equal(
    await statusOnce(() => accountStatus(app, user.token), 401),
    401,
    'changes of the new server are notified',
  )
})

t.test('a single server is not asked for its role, unless the URL requires it', async t => {
  const server = await start(t)
  await build(t, { env: { DATABASE_URL: server.url } })
  await setReadOnly(server, true)
  const DATABASE_URL = `${server.url}?target_session_attrs=read-write`
  await t.rejects(
    build(t, { env: { DATABASE_URL } }),
    /the database: no server can be used: .*the server is read-only/,
  )
})

t.test('a write that the synchronous standby has not confirmed is not acknowledged', async t => {
  const [primary, standby] = await startPair(t)
  const app = await build(t, { env: { DATABASE_URL: urlOf(primary.url, standby.url) } })
  const set = async (names: string): Promise<void> => {
    await query(primary.url, `ALTER SYSTEM SET synchronous_standby_names = '${names}'`)
    await query(primary.url, 'SELECT pg_reload_conf()')
    const get = async () => (await query(primary.url, 'SHOW synchronous_standby_names'))[0]
    await until(get, row => row?.synchronous_standby_names === names, BOUND)
  }
  // PostgreSQL acknowledges a commit whose wait was cancelled: the statement timeout must not cancel it.
  await set('nobody')
  // The server takes the setting over a little later.
  t.equal(await statusOnce(() => signUpStatus(app), 503), 503)
  await set('*')
  t.equal(await statusOnce(() => signUpStatus(app), 201), 201)
})

t.test('without a writable server the start fails with the reason of each, without passwords', async t => {
  const server = await start(t)
  await setReadOnly(server, true)
  const { password } = new URL(server.url)
  const DATABASE_URL = urlOf(server.url, 'postgres://127.0.0.1:1')
  const { stderr, code } = await runCli(['users', 'list'], { DATABASE_URL }).ended
  t.equal(code, 1)
  t.match(stderr, /127\.0\.0\.1:\d+: the server is read-only; 127\.0\.0\.1:1: connect ECONNREFUSED/)
  t.notMatch(stderr, password)
})

t.test('a silent primary is replaced by the promoted standby, with every acknowledged write', async t => {
  const [primary, standby] = await startPair(t)
  const proxy = await createProxy(t, primary.url)
  const app = await build(t, { env: { DATABASE_URL: urlOf(proxy.url, standby.url) } })
  const { token } = await signUp(app)
  const isThere = async () => (await query(standby.url, 'SELECT 1 FROM users').catch(() => [])).length === 1
  t.ok(await until(isThere, Boolean, BOUND), 'replicated')
  proxy.set('silent')
  await query(standby.url, 'SELECT pg_promote()')
  t.equal(await statusOnce(async () => (await rename(app, token)).statusCode, 200), 200)
  t.equal(await statusOnce(async () => (await app.inject('/ready')).statusCode, 200), 200)
})

t.test('a promoted standby is used while a probe of the silent primary still waits', async t => {
  const [primary, standby] = await startPair(t)
  const proxy = await createProxy(t, primary.url)
  const servers = await PrimaryServer.open(urlOf(proxy.url, standby.url))
  t.teardown(() => servers.close())
  const switched = new Promise<void>(resolve => servers.onSwitch(resolve))
  proxy.cut()
  proxy.set('silent')
  await query(standby.url, 'SELECT pg_promote()')
  servers.startSearch()
  await switched
  // Meanwhile the proxy notices connections that have been closed.
  await query(standby.url, 'SELECT 1')
  t.ok(proxy.connections > 0, 'the probe of the former primary is not over')
  t.equal(new URL(servers.url).host, new URL(standby.url).host)
})

t.test('a promoted standby is used although the former primary still works', async t => {
  const [primary, standby] = await startPair(t)
  const app = await build(t, { env: { DATABASE_URL: urlOf(primary.url, standby.url) } })
  const { token } = await signUp(app)
  const isThere = async () =>
    (await query(standby.url, 'SELECT 1 FROM sessions').catch(() => [])).length === 1
  t.ok(await until(isThere, Boolean, BOUND), 'replicated')
  await query(standby.url, 'SELECT pg_promote()')
  // No request of this instance meets an error: only the other server knows.
  await query(standby.url, 'DELETE FROM sessions')
  t.equal(await statusOnce(() => accountStatus(app, token), 401), 401)
  t.equal(await connectionsTo(primary), 0, 'every connection to the former primary is closed')
})

t.test('a former primary that returns is not used again, even if it accepts writes', async t => {
  const [primary, standby] = await startPair(t)
  const app = await build(t, { env: { DATABASE_URL: urlOf(primary.url, standby.url) } })
  await primary.kill()
  await query(standby.url, 'SELECT pg_promote()')
  t.equal(await statusOnce(() => signUpStatus(app), 201), 201)
  await primary.start()
  const { token } = await signUp(app)
  await standby.kill()
  t.equal(await statusOnce(() => signUpStatus(app), 503), 503)
  const statuses: number[] = []
  const isDone = async (): Promise<boolean> => statuses.push(await signUpStatus(app)) > 30
  await until(isDone, Boolean, BOUND)
  t.ok(
    statuses.every(status => status === 503),
    'nothing is written that the present primary would not have',
  )
  // Attempts to connect are closed again.
  t.equal(
    await until(
      () => connectionsTo(primary),
      open => open === 0,
      BOUND,
    ),
    0,
  )
  // A process that starts sees both, and also chooses the later primary.
  await standby.start()
  const other = await build(t, { env: { DATABASE_URL: urlOf(primary.url, standby.url) } })
  t.equal(await accountStatus(other, token), 200)
  t.equal(await statusOnce(() => accountStatus(app, token), 200), 200)
})
