/** Start of the service, and errors that prevent it (docs/design.md, "Tokens and sessions" and "Configuration"). */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { delimiter, join } from 'node:path'
import t, { type Test } from 'tap'
import { freePort } from '../../scripts/postgres-server.ts'
import {
  ADMIN_KEY,
  accountStatus,
  build,
  JWT_SECRET,
  logCapture,
  newFile,
  signIn,
  signUp,
  temporaryFolder,
} from '../support/build.ts'
import { newDatabase } from '../support/postgres.ts'
import { type Running, spawnServer, startServer } from '../support/process.ts'
import { remoteAccountStatus, remoteSignUp } from '../support/remote-accounts.ts'

t.jobs = 3

const OTHER_SECRET = 'another-jwt-secret-0123456789abcdef0123456789abcdef'
const OTHER_KEY = 'another-admin-key-0123456789abcdef'

/** Milliseconds until a process that does not end counts as stuck, on a machine with ten times as much work as cores. */
const END_LIMIT = 60_000

type Start = (env: Record<string, string>) => ChildProcess

/** A process that is expected to end by itself. */
const runToEnd = async (env: Record<string, string>, start: Start = spawnServer) => {
  const child = start({ NODE_ENV: 'test', HOST: '127.0.0.1', PORT: '0', ...env })
  let output = ''
  let errors = ''
  child.stdout?.on('data', chunk => {
    output += chunk
  })
  child.stderr?.on('data', chunk => {
    output += chunk
    errors += chunk
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), END_LIMIT)
  const [code] = await once(child, 'close')
  clearTimeout(timer)
  return { code: code as number | null, output, errors }
}

const adminStatus = async ({ url }: Running, key: string): Promise<number> =>
  (await fetch(`${url}/admin/users`, { headers: { 'x-admin-key': key } })).status

t.test('every configuration error is listed at once, and nothing starts', async t => {
  const invalid = {
    PORT: 'nonsense',
    DATABASE_URL: 'mysql://root:canary-database-password@localhost/x',
    ADMIN_KEY: 'canary-key',
    ADMIN_KEY_PREVIOUS: 'canary-old-key',
    JWT_SECRET: 'canary-jwt-secret',
    JWT_SECRET_PREVIOUS: 'canary-old-secret',
    NODE_ENV: 'prod',
    LOG_LEVEL: 'loud',
    LOG_REQUESTS: 'perhaps',
    TRUST_PROXY: 'true',
    RATE_LIMIT: 'never',
    SESSION_LIFETIME: 'forever',
    SESSION_IDLE: '-1',
    PASSWORD_MIN_LENGTH: 'zero',
  }
  const { code, output } = await runToEnd(invalid)
  t.equal(code, 1)
  for (const name of Object.keys(invalid)) t.match(output, new RegExp(`\\b${name}\\b`), name)
  t.notMatch(output, /canary/, 'the values of secrets are not printed')
  t.notMatch(output, /listening/, 'nothing listens')
  t.notMatch(output, /\n\s+at /, 'a message, not a stack trace')
})

/** Starts the service. Expects exit code 1 and the message, once, as the only text on standard error. */
const failsAlone = async (t: Test, env: Record<string, string>, message: string, start?: Start) => {
  const { code, output, errors } = await runToEnd({ ADMIN_KEY, ...env }, start)
  t.equal(code, 1, 'exit code')
  t.equal(errors, `${message}\n`, 'standard error')
  t.notMatch(output, /is replaced|listening at|\n\s+at /, 'no worker is restarted, no stack trace')
}

/** The same alone and with workers, which are three processes. */
const failsToListen = async (t: Test, env: Record<string, string>, message: string) => {
  const alone = { DATABASE_URL: await newFile(t) }
  const several = { WORKERS: '2', DATABASE_URL: await newDatabase(t), JWT_SECRET }
  for (const [title, settings] of Object.entries({ 'one process': alone, workers: several }))
    await t.test(title, t => failsAlone(t, { ...env, ...settings }, message))
}

const portInUse = async (t: Test): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

t.test('a port in use fails the start with a message', async t => {
  const port = await portInUse(t)
  await failsToListen(
    t,
    { PORT: String(port) },
    `Port ${port} of 127.0.0.1 is in use. Set PORT to another one, or end the process that uses it`,
  )
})

t.test('a port of the metrics that is in use fails the start with a message', async t => {
  const port = await portInUse(t)
  await failsToListen(
    t,
    { METRICS_PORT: String(port) },
    `Port ${port} of 127.0.0.1 is in use. Set METRICS_PORT to another one, or end the process that uses it`,
  )
})

for (const [title, HOST] of [
  ['an address of another machine', '192.0.2.1'],
  // Rejected without a query to a name server.
  ['an unknown name', 'gatehouse..invalid'],
] as const)
  t.test(`HOST with ${title} fails the start with a message`, async t => {
    const advice =
      'Set HOST to 127.0.0.1 (this machine only), 0.0.0.0 (every address), or one of its addresses'
    const message = `HOST ${HOST} is not an address of this machine. ${advice}`
    await failsToListen(t, { HOST, PORT: '0' }, message)
    // Workers report it as with any port.
    const env = { HOST, PORT: String(await freePort()), DATABASE_URL: await newFile(t) }
    await failsAlone(t, env, message)
  })

/** The command that starts a program without the right to use port 1, or `null`. */
const unprivileged = (): readonly string[] | null => {
  const file = '/proc/sys/net/ipv4/ip_unprivileged_port_start'
  if (!existsSync(file) || Number(readFileSync(file, 'utf8')) <= 1) return null
  if (process.getuid?.() !== 0) return []
  const command = ['setpriv', '--bounding-set=-net_bind_service', '--inh-caps=-net_bind_service']
  return spawnSync('setpriv', [...command.slice(1), 'true']).status === 0 ? command : null
}

const withoutPrivilege = unprivileged()

t.test(
  'a forbidden port fails the start with a message',
  { skip: withoutPrivilege === null && 'this machine forbids no port' },
  async t => {
    const start: Start = env => {
      const server = [process.execPath, '--import', './src/preload.js', 'src/server.ts']
      const [command = '', ...args] = [...(withoutPrivilege ?? []), ...server]
      const cwd = join(import.meta.dirname, '..', '..')
      return spawn(command, args, { cwd, env: { ...process.env, ...env } })
    }
    const advice = 'Set PORT to another one (1024 or higher), or grant the process the right to use it'
    // Workers report it as a port in use.
    await failsAlone(
      t,
      { PORT: '1', DATABASE_URL: await newFile(t) },
      `Port 1 of 127.0.0.1 is forbidden to this process. ${advice}`,
      start,
    )
  },
)

const GUESSABLE = { JWT_SECRET: 'canary'.repeat(6), ADMIN_KEY: 'b'.repeat(16) }

t.test('starts with insecure settings', async t => {
  const server = await startServer(t, { env: { ADMIN_KEY: '', RATE_LIMIT: 'off' } })
  const guessable = await startServer(t, {
    env: { ...GUESSABLE, RATE_LIMIT: '', ADMINKEY: 'canary', RATELIMIT: 'off' },
  })

  t.test('without ADMIN_KEY every admin route is 401, and the start logs it (§5.2)', async t => {
    for (const key of ['', 'undefined', 'null', ADMIN_KEY]) t.equal(await adminStatus(server, key), 401, key)
    t.equal((await fetch(`${server.url}/admin/users`)).status, 401, 'no header')
    t.match(server.output(), /ADMIN_KEY/)
  })

  t.test('RATE_LIMIT=off disables limits, and the start logs a warning', async t => {
    const warning = /"level":40,[^\n]*RATE_LIMIT is off: sign-ups and attempts at passwords and codes/
    for (const [{ url, output }, expected] of [
      [server, [400]],
      [guessable, [400, 429]],
    ] as const) {
      const statuses = new Set<number>()
      for (let time = 0; time < 61; time += 1) {
        const response = await fetch(`${url}/account/sign-up`, { method: 'POST' })
        await response.arrayBuffer()
        statuses.add(response.status)
      }
      t.strictSame([...statuses], expected)
      t.equal(warning.test(output()), expected.length === 1)
    }
  })

  t.test('guessable secrets and unknown settings cause warnings', async t => {
    const warnings = guessable
      .output()
      .split('\n')
      .filter(line => line.includes('"level":40'))
    for (const warning of [
      'JWT_SECRET is too easy to guess',
      'ADMIN_KEY is too easy to guess',
      'ADMINKEY is not a setting; did you mean ADMIN_KEY?',
      'RATELIMIT is not a setting; did you mean RATE_LIMIT?',
    ])
      t.ok(
        warnings.some(line => line.includes(warning)),
        warning,
      )
    t.notMatch(guessable.output(), /canary|bbbb/)
  })
})

t.test('a guessable secret fails the start in production', async t => {
  const { code, output } = await runToEnd({ ...GUESSABLE, NODE_ENV: 'production', PORT: 'x' })
  t.equal(code, 1)
  for (const name of ['PORT', 'JWT_SECRET', 'ADMIN_KEY']) t.match(output, new RegExp(`^ {2}${name} `, 'm'))
  t.match(output, 'npm run cli -- keys new')
  t.notMatch(output, /canary|bbbb|listening|\n\s+at /)
})

t.test('ADMIN_KEY_PREVIOUS is accepted beside ADMIN_KEY', async t => {
  const log = logCapture()
  const app = await build(t, { env: { ADMIN_KEY, ADMIN_KEY_PREVIOUS: OTHER_KEY }, logStream: log.stream })
  for (const [key, status] of Object.entries({ [ADMIN_KEY]: 200, [OTHER_KEY]: 200, [`${OTHER_KEY}x`]: 401 }))
    t.equal((await app.inject({ url: '/admin/users', headers: { 'x-admin-key': key } })).statusCode, status)
  t.notMatch(log.text(), /another-admin-key|test-admin-key/)
})

t.test('secrets can come from files', async t => {
  const folder = temporaryFolder(t)
  const DATABASE_URL = await newFile(t)
  const fileOf = (name: string, value: string): string => {
    const path = join(folder, name)
    writeFileSync(path, `${value}\n`, { mode: 0o600 })
    return path
  }
  const secrets = { JWT_SECRET: OTHER_SECRET, JWT_SECRET_PREVIOUS: JWT_SECRET }
  const plain = await build(t, { env: { DATABASE_URL, JWT_SECRET } })
  const { email, token: old } = await signUp(plain)
  await plain.close()
  const values = { ADMIN_KEY, ADMIN_KEY_PREVIOUS: OTHER_KEY, ...secrets }
  const named = Object.entries(values).flatMap(([name, value]) => [
    [name, ''],
    [`${name}_FILE`, fileOf(name, value)],
  ])
  const app = await build(t, { env: { ...Object.fromEntries(named), DATABASE_URL } })
  const status = async (key: string): Promise<number> =>
    (await app.inject({ url: '/admin/users', headers: { 'x-admin-key': key } })).statusCode
  t.equal(await status(ADMIN_KEY), 200, 'ADMIN_KEY_FILE, its line end is not part of it')
  t.equal(await status(OTHER_KEY), 200, 'ADMIN_KEY_PREVIOUS_FILE')
  t.equal(await accountStatus(app, old), 200, 'JWT_SECRET_PREVIOUS_FILE')
  const { accessToken } = (await signIn(app, email)).json()
  await app.close()
  const again = await build(t, { env: { DATABASE_URL, JWT_SECRET: OTHER_SECRET } })
  t.equal(await accountStatus(again, accessToken), 200, 'JWT_SECRET_FILE is the same as JWT_SECRET')
})

t.test('missing keys are generated once, readable only by their owner', async t => {
  const folder = temporaryFolder(t)
  const databaseFile = join(folder, 'test.db')
  const env = { JWT_SECRET: '' }
  const first = await startServer(t, { databaseFile, env })
  const kept = readdirSync(folder).filter(name => !/^test\.db(-wal|-shm)?$/.test(name))
  t.strictSame(kept.toSorted(), ['test.db.encryption-key', 'test.db.jwt-secret'])
  const files = kept.map(name => join(folder, name))
  for (const file of files) t.equal(statSync(file).mode & 0o777, 0o600)
  const { token } = await remoteSignUp(first, 'user@example.com')
  await first.stop('SIGTERM')
  const before = files.map(file => statSync(file).mtimeMs)
  const second = await startServer(t, { databaseFile, env })
  t.strictSame(
    files.map(file => statSync(file).mtimeMs),
    before,
    'not written again',
  )
  t.equal(await remoteAccountStatus(second, token), 200, 'tokens survive a restart')
})

/** A `node` of an older version than the service needs, outside of the project. */
const findOldNode = (): string | undefined =>
  ['/usr/bin', ...(process.env.PATH ?? '').split(delimiter)]
    .filter(folder => folder !== '' && !folder.includes('node_modules'))
    .map(folder => join(folder, 'node'))
    .filter(existsSync)
    .find(path => {
      const version = spawnSync(path, ['-p', 'process.versions.node'], { encoding: 'utf8' }).stdout
      return Number.parseInt(version, 10) < 24
    })

const oldNode = findOldNode()

t.test(
  'an older Node is rejected with one sentence (package.json, engines)',
  { skip: oldNode === undefined && 'this machine has no older Node' },
  async t => {
    const args = ['--import', './src/preload.js', 'src/server.ts']
    const cwd = join(import.meta.dirname, '..', '..')
    const { status, stdout, stderr } = spawnSync(String(oldNode), args, { cwd, encoding: 'utf8' })
    t.equal(status, 1)
    t.equal(stdout, '')
    t.match(stderr, /npm start/)
    t.equal(stderr.trim().split('\n').length, 1, 'one line')
  },
)
