/** Several workers on SQLite: start, stop, replacement, and what they share (DESIGN §15). */
import { once } from 'node:events'
import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { freePort } from '../../scripts/postgres-server.ts'
import { asAdmin, bearer, PASSWORD, temporaryFolder } from '../support/build.ts'
import { fetchMetrics, metricsUrlIn } from '../support/metrics.ts'
import { type Running, type StartOptions, spawnServer, startServer } from '../support/process.ts'
import { remoteAccountStatus, remoteSignUp } from '../support/remote-accounts.ts'
import { until } from '../support/until.ts'
import { type Call, onEach, openConnections } from './connections.ts'

t.jobs = 2

/** Milliseconds until a condition that does not come true counts as failed. */
const DEADLINE = 20_000

const listeningIn = (server: Running): number => server.output().match(/listening at/g)?.length ?? 0

/** Two workers that listen. */
const startTwo = async (t: Test, { env, ...options }: StartOptions = {}): Promise<Running> => {
  const server = await startServer(t, { ...options, env: { WORKERS: '2', ...env } })
  await until(
    () => listeningIn(server),
    count => count === 2,
    DEADLINE,
  )
  return server
}

for (const chosenBy of ['the system', 'us'])
  t.test(`workers share a port chosen by ${chosenBy}, and all stop`, async t => {
    const port = chosenBy === 'us' ? String(await freePort()) : '0'
    const server = await startTwo(t, { env: { PORT: port, METRICS_PORT: '0' } })
    const ports = [...server.output().matchAll(/listening at http:\/\/127\.0\.0\.1:(\d+)/g)].map(
      ([, at]) => at,
    )
    t.strictSame(new Set(ports).size, 1)
    const responses = await onEach(openConnections(t, server), { path: '/ready' })
    t.ok(responses.every(({ status }) => status === 200))
    const metrics = await fetchMetrics(metricsUrlIn(server.output()))
    t.equal(metrics.sum('gatehouse_workers'), 2)
    t.equal(metrics.sum('http_server_request_duration_seconds_count', { route: '/ready' }), responses.length)
    t.equal(metrics.sum('process_start_time_seconds') < Date.now() / 1_000, true, 'the process counts once')
    t.equal(await server.stop('SIGTERM'), 0)
    t.equal(server.output().match(/"stopped"/g)?.length, 2, 'both have drained')
  })

t.test('a limit counts the requests to all workers', async t => {
  const server = await startTwo(t, { env: { RATE_LIMIT: 'on' } })
  const connections = openConnections(t, server)
  const signIn = {
    method: 'POST',
    path: '/account/sign-in',
    body: { email: 'nobody@example.com', password: PASSWORD },
  }
  const statuses: number[] = []
  for (let attempt = 0; attempt < 8; attempt += 1)
    for (const connection of connections.slice(0, 1 + (attempt % 2)))
      statuses.push((await connection(signIn)).status)
  t.strictSame(statuses.slice(0, 5), [401, 401, 401, 401, 401])
  t.ok(statuses.includes(429), 'the account is throttled as in one process')
})

t.test('every worker shows the last request, once its worker has stored it (DESIGN §15)', async t => {
  const server = await startTwo(t)
  const { id, token } = await remoteSignUp(server, 'user@example.com')
  const connections = openConnections(t, server)
  const lastRequests = async (call: Call): Promise<string[]> =>
    (await onEach(connections, call)).map(({ json }) => (json as { lastRequestAt: string }).lastRequestAt)
  for (let round = 0; round < 3; round += 1) {
    const shown = await lastRequests({ path: '/account', headers: bearer(token) })
    t.strictSame(shown, shown.toSorted(), 'each shows its own')
    const latest = shown.at(-1)
    const stored = await until(
      () => lastRequests({ path: `/admin/users/${id}`, headers: asAdmin }),
      timestamps => timestamps.every(at => at === latest),
      DEADLINE,
    )
    t.strictSame([...new Set(stored)], [latest])
  }
})

t.test('a restart with another number of workers keeps everything', async t => {
  const databaseFile = join(temporaryFolder(t), 'test.db')
  const two = await startTwo(t, { databaseFile })
  const { token } = await remoteSignUp(two, 'user@example.com')
  t.equal(await remoteAccountStatus(two, token), 200)
  t.equal(await two.stop('SIGTERM'), 0)
  const one = await startServer(t, { databaseFile })
  t.equal(await remoteAccountStatus(one, token), 200)
})

/** Ends the first worker, or the writer thread, in some way once a file exists. Loaded into every thread of the service. */
const SABOTAGE = `
  import { existsSync, rmSync } from 'node:fs'
  import { isMainThread, workerData } from 'node:worker_threads'
  const victim = isMainThread ? null : workerData?.store ? 'worker' : workerData?.walFd ? 'writer' : null
  if (victim === process.env.SABOTAGE_OF)
    setInterval(() => {
      if (!existsSync(process.env.SABOTAGE_FILE)) return
      rmSync(process.env.SABOTAGE_FILE, { force: true })
      const ways = {
        throw: () => { throw new Error('sabotage') },
        exit: () => process.exit(7),
        memory: () => { const all = []; for (;;) all.push(new Array(1e6).fill(all.length)) },
      }
      ways[process.env.SABOTAGE]()
    }, 20).unref()
`

/** Two workers, and what ends one of their threads. */
const startVulnerable = async (
  t: Test,
  way: 'throw' | 'exit' | 'memory',
  { of = 'worker', databaseFile }: { of?: 'worker' | 'writer'; databaseFile?: string } = {},
) => {
  const folder = temporaryFolder(t)
  const [module, file] = [join(folder, 'sabotage.mjs'), join(folder, 'now')]
  writeFileSync(module, SABOTAGE)
  const server = await startTwo(t, {
    ...(databaseFile !== undefined && { databaseFile }),
    env: {
      SABOTAGE: way,
      SABOTAGE_OF: of,
      SABOTAGE_FILE: file,
      NODE_OPTIONS: `--max-old-space-size=400 --import=${pathToFileURL(module).href}`,
    },
  })
  const hasEnded = () => !existsSync(file)
  return { server, endThread: () => writeFileSync(file, ''), hasEnded }
}

/** Signs users up until it is stopped. */
const startSignUps = (server: Running) => {
  const acknowledged: string[] = []
  let running = true
  const load = Array.from({ length: 4 }, async (_, client) => {
    for (let number = 0; running; number += 1) {
      const user = await remoteSignUp(server, `user${number}@client${client}.example`).catch(() => null)
      if (user !== null) acknowledged.push(user.token)
    }
  })
  return {
    acknowledged,
    acknowledges: (more: number) => {
      const count = acknowledged.length + more
      return until(
        () => acknowledged.length,
        length => length >= count,
        DEADLINE,
      )
    },
    stop: async () => {
      running = false
      await Promise.all(load)
    },
  }
}

for (const [way, title] of Object.entries({
  throw: 'an unexpected error',
  exit: 'an exit',
  memory: 'a full heap',
} as const))
  t.test(`a worker that ends by ${title} is replaced, and nothing acknowledged is lost`, async t => {
    const { server, endThread, hasEnded } = await startVulnerable(t, way as 'throw' | 'exit' | 'memory')
    const { acknowledged, acknowledges, stop } = startSignUps(server)
    await acknowledges(10)
    endThread()
    await until(
      () => listeningIn(server),
      count => count === 3,
      DEADLINE,
    )
    await stop()
    t.ok(hasEnded(), 'one worker has ended')
    t.match(server.output(), /a worker exited and is replaced/)
    t.equal(server.process.exitCode, null)
    for (const token of acknowledged) t.equal(await remoteAccountStatus(server, token), 200)
    t.equal(await server.stop('SIGTERM'), 0)
  })

t.test('a lost writer thread is replaced for every worker, and nothing acknowledged is lost', async t => {
  const { server, endThread, hasEnded } = await startVulnerable(t, 'exit', { of: 'writer' })
  const { acknowledged, acknowledges, stop } = startSignUps(server)
  await acknowledges(10)
  endThread()
  t.ok(await until(hasEnded, Boolean, DEADLINE))
  await acknowledges(10)
  await stop()
  const connections = openConnections(t, server)
  const [connection] = connections
  for (const token of acknowledged) {
    const headers = bearer(token)
    t.equal((await connection?.({ path: '/account', headers }))?.status, 200)
  }
  for (const [index, connection] of connections.entries()) {
    const headers = bearer(acknowledged[index] ?? '')
    const body = { firstName: 'New' }
    t.equal((await connection({ method: 'PUT', path: '/account', headers, body })).status, 200)
  }
  t.notMatch(server.output(), /a worker exited/)
  t.equal(await server.stop('SIGTERM'), 0)
})

t.test('a worker that starts while another database is at the path never reads it', async t => {
  const databaseFile = join(temporaryFolder(t), 'test.db')
  const { server, endThread } = await startVulnerable(t, 'exit', { databaseFile })
  const { token } = await remoteSignUp(server, 'user@example.com')
  const statuses = async (): Promise<number[]> => {
    const responses = await onEach(openConnections(t, server), { path: '/account', headers: bearer(token) })
    return [...new Set(responses.map(({ status }) => status))]
  }
  t.strictSame(await statuses(), [200])
  renameSync(databaseFile, `${databaseFile}.aside`)
  writeFileSync(databaseFile, '')
  endThread()
  // It has ended, and then it has tried to start or has started.
  await until(
    () => (server.output().match(/a worker exited/g)?.length ?? 0) + listeningIn(server),
    count => count >= 4,
    DEADLINE,
  )
  t.equal(listeningIn(server), 2, 'it does not start')
  t.strictSame(await statuses(), [503])
  renameSync(`${databaseFile}.aside`, databaseFile)
  await until(
    () => listeningIn(server),
    count => count === 3,
    DEADLINE,
  )
  t.strictSame(await until(statuses, found => found.join() === '200', DEADLINE), [200])
  t.equal(await server.stop('SIGTERM'), 0)
})

t.test('a stop under load keeps everything that any worker has acknowledged', async t => {
  const databaseFile = join(temporaryFolder(t), 'test.db')
  const two = await startTwo(t, { databaseFile })
  const { acknowledged, acknowledges, stop } = startSignUps(two)
  await acknowledges(20)
  t.equal(await two.stop('SIGTERM'), 0)
  await stop()
  const one = await startServer(t, { databaseFile })
  for (const token of acknowledged) t.equal(await remoteAccountStatus(one, token), 200)
})

const failedStart = async (t: Test, env: Record<string, string>) => {
  const child = spawnServer({
    ...{ WORKERS: '2', DATABASE_URL: `sqlite:${join(temporaryFolder(t), 'test.db')}`, ...env },
  })
  t.teardown(() => child.kill('SIGKILL'))
  let output = ''
  child.stderr?.on('data', chunk => {
    output += chunk
  })
  const [code] = await once(child, 'exit')
  return { code, output }
}

t.test('workers that cannot start end the process, which states the reason once', async t => {
  const server = createServer().listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const busy = await failedStart(t, { PORT: String(port) })
  t.equal(busy.code, 1)
  t.equal(busy.output.match(/PORT/g)?.length, 1, busy.output)
  const two = await startTwo(t)
  const taken = await failedStart(t, { PORT: String(two.port) })
  t.equal(taken.code, 1, 'another service is not joined')
  t.match(taken.output, /^Port \d+ of 127\.0\.0\.1 is in use/)
  const folder = temporaryFolder(t)
  const broken = await failedStart(t, { PORT: '0', DATABASE_URL: `sqlite:${folder}` })
  t.equal(broken.code, 1)
  t.match(broken.output, /Gatehouse cannot start/)
})

t.test('the second signal ends the process at once', async t => {
  const server = await startTwo(t, { env: { DRAIN_DELAY: '60s' } })
  server.process.kill('SIGTERM')
  await until(
    () => server.output().match(/draining/g)?.length,
    count => count === 2,
    DEADLINE,
  )
  t.equal(await server.stop('SIGTERM'), 1)
})

t.test('the status names the number of workers', async t => {
  const server = await startTwo(t)
  const response = await fetch(`${server.url}/admin/status`, { headers: asAdmin })
  t.match(await response.json(), { engine: 'sqlite', workers: 2 })
})
