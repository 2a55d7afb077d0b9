/** What an idle service has loaded, and what of the start is kept for the next one (docs/design.md, "Start and idle memory"). */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { schemaOf } from '#core/store/migrations'
import { BUILT_IN_FEATURES } from '#features/built-in'
import { ensureSchema } from '#storage/sqlite/migrate'
import { temporaryFolder } from '../support/build.ts'
import { type Running, startServer } from '../support/process.ts'

/**
 * Adds to a file which packages of `node_modules` and files of the project each thread loads, once, and at its end whether it has
 * stripped types and loaded `fetch`. Not to standard error: a pipe that is full would end the process.
 *
 * The service has the built-in features only: what those of `src/features/own.ts` load is the choice of their team. It never begins a
 * clean-up, which would load its modules at a random time of the first minute.
 */
const RECORD = `
import crypto from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { registerHooks, syncBuiltinESMExports } from 'node:module'
import { isMainThread } from 'node:worker_threads'
const { randomInt } = crypto
const CLEAN_UP = 60_000
crypto.randomInt = (...args) => args.length === 1 && args[0] === CLEAN_UP ? 2 ** 31 - 1 : randomInt(...args)
syncBuiltinESMExports()
const thread = isMainThread ? 'main' : 'thread'
const known = new Set()
const record = text => appendFileSync(process.env.RECORD_FILE, thread + ' ' + text + '\\n')
registerHooks({
  load(url, context, next) {
    const [, name] = /node_modules.((?:@[^/]+.)?[^/]+)/.exec(url) ?? /.((?:src|plugins)[/].*)$/.exec(url) ?? []
    if (name !== undefined && !known.has(name)) record('loads ' + name)
    known.add(name)
    if (name === 'src/features/own.ts')
      return { format: 'module', source: 'export const FEATURES = []', shortCircuit: true }
    return next(url, context)
  },
})
process.on('exit', () => {
  const strips = process.moduleLoadList.includes('NativeModule internal/deps/amaro/dist/index')
  record(strips ? 'strips types' : 'does not strip types')
  const fetches = process.moduleLoadList.includes('NativeModule internal/deps/undici/undici')
  record(fetches ? 'has fetch' : 'has no fetch')
})
`

const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(RECORD)}`

interface Idle {
  readonly server: Running
  /** What was recorded so far. */
  readonly record: () => string
}

const PRODUCTION = { NODE_ENV: 'production', PUBLIC_URL: 'http://127.0.0.1', WORKERS: '1' }

/** In production, with a migrated database, and with mails, which could load more. */
const startIdle = async (t: Test, env: Record<string, string> = {}): Promise<Idle> => {
  const RECORD_FILE = join(temporaryFolder(t), 'record')
  const databaseFile = join(temporaryFolder(t), 'test.db')
  await ensureSchema(databaseFile, schemaOf(BUILT_IN_FEATURES))
  const server = await startServer(t, {
    databaseFile,
    env: {
      ...PRODUCTION,
      NODE_OPTIONS,
      RECORD_FILE,
      MAIL_URL: 'smtp://127.0.0.1:9',
      RATE_LIMIT: 'on',
      ...env,
    },
  })
  const { status } = await fetch(`${server.url}/ready`)
  t.equal(status, 200)
  return { server, record: () => readFileSync(RECORD_FILE, 'utf8') }
}

/** What threads of this kind have loaded. */
const loadedBy = ({ record }: Idle, thread: 'main' | 'thread'): ReadonlySet<string> =>
  new Set(Array.from(record().matchAll(new RegExp(`^${thread} loads (.*)$`, 'gm')), ([, name = '']) => name))

/**
 * Loaded when they are used: by the other engine, migrations and lists, schemas, the first mail, the OpenAPI document, new passwords, a
 * terminal, the command line, providers of identities.
 */
const ON_DEMAND = [
  'kysely',
  'ajv',
  '@fastify/ajv-compiler',
  '@fastify/fast-json-stringify-compiler',
  'pg',
  'nodemailer',
  'yaml',
  '@zxcvbn-ts/language-common',
  'pino-pretty',
  'commander',
  'openid-client',
  'jose',
  'src/features/identities/openid-client.ts',
  'src/process/tracing/tracing.ts',
]

t.test('an idle service on SQLite has not loaded what it may never use', async t => {
  const idle = await startIdle(t)
  const loaded = loadedBy(idle, 'main')
  for (const name of ['src/app.ts', 'fastify', 'better-sqlite3', 'plugins/openapi.ts'])
    t.ok(loaded.has(name), `the record has ${name}`)
  t.strictSame(
    ON_DEMAND.filter(name => loaded.has(name)),
    [],
  )

  const document = await fetch(`${idle.server.url}/openapi.json`)
  t.equal(document.status, 200)
  t.ok(loadedBy(idle, 'main').has('yaml'), 'and loads it when it is used')
  const headers = { 'content-type': 'application/json' }
  const { status } = await fetch(`${idle.server.url}/account/sign-in`, {
    method: 'POST',
    headers,
    body: '{}',
  })
  t.equal(status, 400)
  t.ok(loadedBy(idle, 'main').has('ajv'))
  t.equal(await idle.server.stop('SIGTERM'), 0)
  t.match(idle.record(), /^main has no fetch$/m)
  t.match(idle.record(), /^thread has no fetch$/m)
})

t.test('the writer thread loads operations, without schemas, services and the server', async t => {
  const loaded = loadedBy(await startIdle(t), 'thread')
  for (const name of [
    'src/storage/sqlite/writer-thread.ts',
    'better-sqlite3',
    'src/features/api-keys/stored-api-keys.ts',
    'src/features/admin-keys/stored-admin-keys.ts',
  ])
    t.ok(loaded.has(name), `the record has ${name}`)
  const others = [
    '@sinclair/typebox',
    'kysely',
    'fastify',
    'ajv',
    'pino',
    'src/feature/declaration.ts',
    'src/services.ts',
  ]
  t.strictSame(
    others.filter(name => loaded.has(name)),
    [],
  )
})

t.test('the primary of several workers loads neither Fastify nor the app', async t => {
  const idle = await startIdle(t, { WORKERS: '2', NODE_ENV: 'production' })
  const loaded = loadedBy(idle, 'main')
  t.ok(loaded.has('src/process/workers/primary.ts'))
  t.strictSame(
    ['fastify', 'src/app.ts', 'src/services.ts'].filter(name => loaded.has(name)),
    [],
  )
  t.ok(loadedBy(idle, 'thread').has('src/app.ts'))
})

t.test('also after a kill, the next start strips no types', async t => {
  const env = { NODE_COMPILE_CACHE: temporaryFolder(t) }
  const first = await startIdle(t, env)
  t.equal(await first.server.stop('SIGKILL'), null)

  const second = await startIdle(t, env)
  t.equal(await second.server.stop('SIGTERM'), 0)
  t.notMatch(second.record(), /^\w+ strips types$/m, 'neither the event loop nor the writer thread')
  t.match(second.record(), /^thread does not strip types$/m, 'both report it')
  t.match(second.record(), /^main does not strip types$/m)
})

/** Fills the young generation, calls `releaseIdleMemory`, and prints whether it has grown, was collected by request, and shrunk. */
const FILL_AND_RELEASE = `
import { constants, PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics } from 'node:v8'
import { releaseIdleMemory } from './src/base/idle-memory.ts'
const { NODE_PERFORMANCE_GC_MINOR: MINOR, NODE_PERFORMANCE_GC_FLAGS_FORCED: FORCED } = constants
const size = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space').space_size
let wasForced = false
new PerformanceObserver(list => {
  wasForced ||= list.getEntries().some(({ detail }) => detail.kind === MINOR && detail.flags & FORCED)
}).observe({ entryTypes: ['gc'] })
const before = size()
Array.from({ length: 400_000 }, (_, index) => ({ index, text: 'text ' + index }))
const full = size()
releaseIdleMemory(50)
const end = performance.now() + 30_000
const timer = setInterval(() => {
  const hasShrunk = size() <= full / 4
  if (!(wasForced && hasShrunk) && performance.now() < end) return
  clearInterval(timer)
  process.stdout.write(JSON.stringify({ hasGrown: full > 2 * before, wasForced, hasShrunk }))
}, 250)
`

t.test('memory of the young generation returns to the system when little is allocated', t => {
  const cwd = join(import.meta.dirname, '..', '..')
  const args = ['--input-type=module', '--eval', FILL_AND_RELEASE]
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd, encoding: 'utf8' })
  t.equal(stderr, '')
  t.strictSame(JSON.parse(stdout), { hasGrown: true, wasForced: true, hasShrunk: true })
  t.end()
})
