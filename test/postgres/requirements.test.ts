/** What a PostgreSQL database needs is refused at the start or set on each connection; errors of data or settings are no outage. */
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import pg from 'pg'
import t, { type Test } from 'tap'
import { openPostgresStorage } from '#core/store/postgres'
import { allFeatures } from '#features/built-in'
import { Connection, connectionOptions } from '#storage/postgres/connection'
import { asAdmin, bearer, build, freshEmail, logCapture, PASSWORD, signIn, signUp } from '../support/build.ts'
import { importAll } from '../support/bulk-users.ts'
import { loadConfig } from '../support/config.ts'
import { createDatabase, newDatabase, query } from '../support/postgres.ts'
import { GREETING, startTransactionPooler } from '../support/transaction-pooler.ts'

const CONNECTIONS = 10

const withOptions = (url: string, options: string): string => {
  const changed = new URL(url)
  changed.searchParams.set('options', options)
  return changed.href
}

const nameOf = (url: string): string => new URL(url).pathname.slice(1)

/** Another database on the server of `url`, removed with the test. */
const createBeside = async (t: Test, url: string, encoding: string): Promise<string> => {
  const name = `${nameOf(url)}_${encoding.toLowerCase()}`
  await query(
    url,
    `CREATE DATABASE ${name} ENCODING '${encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'`,
  )
  t.teardown(() => query(url, `DROP DATABASE ${name} WITH (FORCE)`))
  return Object.assign(new URL(url), { pathname: name }).href
}

/** A role that may use the database of `url`, removed with the test. */
const createRole = async (t: Test, url: string, options = ''): Promise<string> => {
  const role = `${nameOf(url)}_role`
  await query(url, `CREATE ROLE ${role} LOGIN PASSWORD 'canary' ${options}`)
  t.teardown(() => query(url, `DROP OWNED BY ${role}; DROP ROLE ${role}`))
  return role
}

const asRole = (url: string, username: string, password = 'canary'): string =>
  Object.assign(new URL(url), { username, password }).href

const refuses = async (t: Test, url: string, message: RegExp): Promise<void> => {
  const error = await openPostgresStorage(url, CONNECTIONS, allFeatures()).then(
    async storage => {
      await storage.close()
      return new Error('it was opened')
    },
    (error: Error) => error,
  )
  t.match(error.message, message)
  t.match(error.message, /^the database: /)
  t.notMatch(error.message, /canary|\n/)
  t.ok('code' in error, 'the operator can fix it: no stack is printed')
}

t.test('D10: a database that cannot be used is refused in one sentence that says what to change', async t => {
  const url = await createDatabase(t)
  const encodings = ['LATIN1', 'SQL_ASCII', 'EUC_JP']
  for (const encoding of encodings)
    await refuses(
      t,
      await createBeside(t, url, encoding),
      new RegExp(`encoding of \\w+ is ${encoding}: create .*UTF8`),
    )
  const refused: [options: string, message: RegExp][] = [
    ['-c default_transaction_read_only=on', /default_transaction_read_only is on, set it to off/],
    ['-c synchronous_commit=off', /synchronous_commit is off, set it to on/],
    ['-c session_replication_role=replica', /session_replication_role is replica, set it to origin/],
    ['-c search_path=nowhere', /may use no schema of its search_path \(nowhere\)/],
  ]
  for (const [options, message] of refused) await refuses(t, withOptions(url, options), message)

  const migrated = await newDatabase(t)
  const role = await createRole(t, migrated, 'CONNECTION LIMIT 10')
  await refuses(
    t,
    asRole(migrated, role),
    /can have 10 connections, and this process needs 11: lower DATABASE_CONNECTIONS/,
  )
  await query(migrated, `ALTER ROLE ${role} CONNECTION LIMIT 11`)
  await query(migrated, `GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO ${role}`)
  await query(migrated, `GRANT SELECT ON kysely_migration TO ${role}`)
  await refuses(t, asRole(migrated, role), /has no right to DELETE in the table \w+: GRANT/)
  await query(migrated, `GRANT DELETE ON ALL TABLES IN SCHEMA public TO ${role}`)
  for (const table of ['pending_changes', 'last_requests', 'passkeys']) {
    await query(migrated, `REVOKE INSERT ON ${table} FROM ${role}`)
    await refuses(
      t,
      asRole(migrated, role),
      new RegExp(`no right to INSERT in the table ${table}: GRANT .* IN SCHEMA public TO ${role}$`),
    )
    await query(migrated, `GRANT INSERT ON ${table} TO ${role}`)
  }
  await (await openPostgresStorage(asRole(migrated, role), CONNECTIONS, allFeatures())).close()
  await refuses(t, asRole(url, role), /may not create tables: GRANT CREATE ON SCHEMA public/)
  await refuses(
    t,
    asRole(url, role, ''),
    /the server asks for a password: add it to the URL, or set PGPASSWORD/,
  )
  await refuses(t, asRole(url, role, 'wrong-canary'), /password authentication failed/)
})

/** What an operator may set for a database, also while the service runs. */
const HOSTILE = {
  array_nulls: 'off',
  standard_conforming_strings: 'off',
  default_transaction_isolation: 'serializable',
  default_transaction_deferrable: 'on',
  statement_timeout: '1min',
  lock_timeout: '1ms',
  idle_in_transaction_session_timeout: '2s',
  idle_session_timeout: '2s',
  transaction_timeout: '2s',
  client_encoding: 'LATIN1',
  bytea_output: 'escape',
  datestyle: 'German, DMY',
  intervalstyle: 'sql_standard',
  timezone: 'Asia/Kathmandu',
  extra_float_digits: '-15',
}

t.test('D10: each connection sets what the service relies on', async t => {
  const url = await createDatabase(t)
  for (const [name, value] of Object.entries(HOSTILE))
    await query(url, `ALTER DATABASE ${nameOf(url)} SET ${name} = '${value}'`)
  const app = await build(t, { env: { DATABASE_URL: url } })
  const { email, token } = await signUp(app)
  const signedIn = await app.inject({
    method: 'POST',
    url: '/account/sign-in',
    headers: { 'user-agent': 'Браузер 浏览器 \u00e4' },
    payload: { email, password: PASSWORD },
  })
  t.equal(signedIn.statusCode, 200)
  const renamed = { firstName: 'Zoë 测试', lastName: '\\ \' "' }
  const change = { method: 'PUT', url: '/account', headers: bearer(token), payload: renamed } as const
  t.match((await app.inject(change)).json(), renamed)
  const results = await importAll(app, [{ email: freshEmail() }, { email: freshEmail(), firstName: 'Ada' }])
  t.match(results, [{ status: 'created' }, { status: 'created' }])
  t.equal((await app.inject({ url: '/admin/users?search=zo', headers: asAdmin })).statusCode, 200)

  await query(url, `ALTER DATABASE ${nameOf(url)} SET synchronous_commit = 'off'`)
  const later = new Connection(connectionOptions(url))
  await later.connect()
  const set = {
    array_nulls: 'on',
    client_encoding: 'UTF8',
    default_transaction_isolation: 'read committed',
    idle_in_transaction_session_timeout: '0',
    idle_session_timeout: '0',
    lock_timeout: '0',
    standard_conforming_strings: 'on',
    statement_timeout: '5s',
    synchronous_commit: 'on',
    transaction_timeout: '0',
  }
  for (const [name, value] of Object.entries(set))
    t.strictSame(
      Object.values((await later.query(`SHOW ${name}`)).rows[0]),
      [value],
      `${name} of a later connection`,
    )
  await later.end()
})

t.test(
  'D10: a connection that ends while it is set up is an error of the call, not of the process',
  async t => {
    const server = createServer(socket =>
      socket.once('data', () => {
        socket.write(GREETING)
        socket.once('data', () => socket.end())
      }),
    ).listen(0, '127.0.0.1')
    t.teardown(() => server.close())
    await once(server, 'listening')
    const url = `postgres://u@127.0.0.1:${(server.address() as AddressInfo).port}/db`
    await t.rejects(new Connection(connectionOptions(url)).connect(), { message: /terminated unexpectedly/ })
  },
)

t.test('D10: a pooler in transaction mode is refused', async t => {
  await refuses(
    t,
    await startTransactionPooler(t, await newDatabase(t)),
    /shares server processes .*pool_mode = session/,
  )
})

t.test(
  'D10: only outages are 503; errors of data and settings are 500, logged, without the text of the database',
  async t => {
    const url = await createDatabase(t)
    const log = logCapture()
    const app = await build(t, { env: { DATABASE_URL: url }, logStream: log.stream })
    const { email, token } = await signUp(app)
    const failWith = (code: string) =>
      query(
        url,
        `CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN RAISE EXCEPTION 'canary' USING ERRCODE = '${code}'; END $$`,
      )
    await failWith('P0001')
    for (const table of ['users', 'sessions'])
      await query(
        url,
        `CREATE TRIGGER fail BEFORE INSERT OR UPDATE ON ${table} FOR EACH ROW EXECUTE FUNCTION fail()`,
      )
    const attempts = [
      () =>
        app.inject({
          method: 'POST',
          url: '/account/sign-up',
          payload: { email: freshEmail(), password: PASSWORD },
        }),
      () => signIn(app, email),
      () =>
        app.inject({ method: 'PUT', url: '/account', headers: bearer(token), payload: { firstName: 'Ada' } }),
    ]
    const codes = {
      500: [
        '22021',
        '22P05',
        '22003',
        '23514',
        '42703',
        '42501',
        '0A000',
        'P0001',
        '54000',
        '26000',
        '3F000',
      ],
      503: [
        '25006',
        '40001',
        '40P01',
        '53100',
        '53300',
        '55P03',
        '57014',
        '57P01',
        '58030',
        '08006',
        'XX001',
      ],
    }
    for (const [status, of] of Object.entries(codes))
      for (const [index, code] of of.entries()) {
        await failWith(code)
        const response = await attempts[index % attempts.length]?.()
        t.equal(response?.statusCode, Number(status), code)
        t.notMatch(response?.body, /canary/, code)
        if (status === '500')
          t.match(log.records().at(-1), { level: 50, msg: 'Something went wrong', err: { code } }, code)
      }
    await query(url, 'DROP FUNCTION fail CASCADE')
    t.equal((await signIn(app, email)).statusCode, 200, 'it recovers')
  },
)

t.test('D10: URLs of sockets connect, and parameters without an effect are refused', async t => {
  const url = new URL(await newDatabase(t))
  const [{ folder } = { folder: '' }] = (await query(
    url.href,
    `SELECT split_part(current_setting('unix_socket_directories'), ',', 1) AS folder`,
  )) as { folder: string }[]
  const { username, password, pathname, port } = url
  const parameters = `host=${folder}&port=${port}`
  const forms = [
    `postgres://${username}:${password}@${pathname}?${parameters}`,
    `postgres://${pathname}?${parameters}&user=${username}&password=${password}`,
    `postgres://${username}:${password}@${encodeURIComponent(folder)}:${port}${pathname}`,
    `postgres://${username}:${password}@/${nameOf(url.href)}?port=${port}&host=${encodeURIComponent(folder)}`,
  ]
  const JWT_SECRET = 'xTq4-kJ8d0-qLw_3nVz7RtYp1sX5cB9mG2hFe'
  for (const form of forms) {
    const { storage } = loadConfig({ DATABASE_URL: form, JWT_SECRET })
    t.match(storage, { engine: 'postgres', url: form })
    // A server elsewhere has no socket here.
    if (folder !== '' && existsSync(folder)) await (await openPostgresStorage(form, 1, allFeatures())).close()
  }
  const refused: [query: string, message: RegExp][] = [
    ['sslmod=require', /must not have the parameter sslmod: it can have application_name, .*sslmode/],
    ['pgbouncer=true', /must not have the parameter pgbouncer:/],
    ['schema=public', /must not have the parameter schema:/],
    ['connect_timeout=10', /must not have the parameter connect_timeout:/],
    ['statement_timeout=0', /must not have the parameter statement_timeout:/],
    ['constructor=x', /must not have the parameter constructor:/],
    ['sslmode=allow', /a parameter sslmode that must be disable, prefer/],
    ['channel_binding=require', /a parameter channel_binding that must be disable, prefer/],
    ['client_encoding=LATIN1', /a parameter client_encoding that must be UTF8/],
    ['sslrootcert=system', /a parameter sslrootcert that must be the path of a file/],
    ['host=a,b', /a parameter host that must be one host/],
  ]
  for (const name of ['DATABASE_URL', 'DATABASE_READ_URL'])
    for (const [search, message] of refused) {
      const env = {
        DATABASE_URL: 'postgres://u:p@h/db',
        JWT_SECRET,
        [name]: `postgres://u:canary@h/db?${search}`,
      }
      t.throws(() => loadConfig(env), { message }, `${name} ${search}`)
    }
  const leaking = { DATABASE_URL: 'postgres://u:p@s?can&ary@h/db', JWT_SECRET }
  t.throws(() => loadConfig(leaking), { message: /^(?!.*(can&ary|parameter can|ary)).*DATABASE_URL/s })
  const accepted =
    'sslmode=no-verify&channel_binding=prefer&application_name=x&options=-c%20work_mem=8MB&client_encoding=utf8'
  t.doesNotThrow(() => loadConfig({ DATABASE_URL: `postgres://u:p@h/db?${accepted}`, JWT_SECRET }))
})

t.test('D10: a missing password is said of every way to authenticate', async t => {
  const url = new URL(await newDatabase(t))
  url.password = ''
  const client = new Connection(connectionOptions(url.href))
  client.on('error', () => undefined)
  await t.rejects(client.connect(), { message: /^the server asks for a password/ })
  t.equal(pg.defaults.password, null)
})
