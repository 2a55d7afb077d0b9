/** Several workers on SQLite: start, stop, replacement, and what they share (docs/design.md, "Workers on SQLite"). */
import { once } from 'node:events'
import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { freePort } from '../../scripts/postgres-server.ts'
import {
  accountStatus,
  asAdmin,
  bearer,
  build,
  freshEmail,
  PASSWORD,
  temporaryFolder,
} from '../support/build.ts'
import { fetchMetrics, metricsUrlIn } from '../support/metrics.ts'
import {
  newDatabaseFile,
  type Running,
  type StartOptions,
  spawnServer,
  startServer,
} from '../support/process.ts'
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

t.test('two workers', async t => {
  const server = await startTwo(t, { env: { RATE_LIMIT: 'on' } })

  t.test('a limit counts the requests to all workers', async t => {
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

  t.test('every worker shows the last request, once its worker has stored it', async t => {
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

  t.test('the status names the number of workers', async t => {
    const response = await fetch(`${server.url}/admin/status`, { headers: asAdmin })
    t.match(await response.json(), { engine: 'sqlite', workers: 2 })
  })

  t.test('workers that cannot start end the process, which states the reason once', async t => {
    const other = createServer().listen(0, '127.0.0.1')
    t.teardown(() => other.close())
    await once(other, 'listening')
    const { port } = other.address() as { port: number }
    const busy = await failedStart(t, { PORT: String(port) })
    t.equal(busy.code, 1)
    t.equal(busy.output.match(/PORT/g)?.length, 1, busy.output)
    const taken = await failedStart(t, { PORT: String(server.port) })
    t.equal(taken.code, 1, 'another service is not joined')
    t.match(taken.output, /^Port \d+ of 127\.0\.0\.1 is in use/)
    const folder = temporaryFolder(t)
    const broken = await failedStart(t, { PORT: '0', DATABASE_URL: `sqlite:${folder}` })
    t.equal(broken.code, 1)
    t.match(broken.output, /Gatehouse cannot start/)
  })
})

/** Ends a thread of a kind in the way that the name of a file says. Loaded into every thread of the service. */
const SABOTAGE = `
  import { unlinkSync } from 'node:fs'
  import { isMainThread, workerData } from 'node:worker_threads'
  const kind = isMainThread ? null : workerData?.store ? 'worker' : workerData?.walFd ? 'writer' : null
  const ways = {
    throw: () => { throw new Error('sabotage') },
    exit: () => process.exit(7),
    memory: () => { const all = []; for (;;) all.push(new Array(1e6).fill(all.length)) },
  }
  const isMine = way => {
    try {
      // Not rmSync, which several threads can do with one file: all of them would end.
      unlinkSync(process.env.SABOTAGE + '/' + kind + '-' + way)
      return true
    } catch {
      return false
    }
  }
  if (kind !== null) setInterval(() => Object.keys(ways).filter(isMine).forEach(way => ways[way]()), 20).unref()
`

type Way = 'throw' | 'exit' | 'memory'

/** Two workers, and what ends one of their threads. */
const startVulnerable = async (t: Test, databaseFile: string) => {
  const folder = temporaryFolder(t)
  const module = join(folder, 'sabotage.mjs')
  writeFileSync(module, SABOTAGE)
  const NODE_OPTIONS = `--max-old-space-size=256 --import=${pathToFileURL(module).href}`
  const server = await startTwo(t, { databaseFile, env: { SABOTAGE: folder, NODE_OPTIONS } })
  const lost = () => server.output().match(/a worker exited and is replaced/g)?.length ?? 0
  /** @returns whether a thread ends. */
  const endThread = (kind: 'worker' | 'writer', way: Way): Promise<boolean> => {
    const file = join(folder, `${kind}-${way}`)
    writeFileSync(file, '')
    return until(() => !existsSync(file), Boolean, DEADLINE)
  }
  return { server, lost, endThread }
}

/** Milliseconds between two sign-ups of a client: without it hashing takes more of a core than the tests. */
const PAUSE = 50

/** Signs users up until it is stopped. */
const startSignUps = (server: Running) => {
  const acknowledged: string[] = []
  let running = true
  const load = Array.from({ length: 4 }, async () => {
    while (running) {
      const user = await remoteSignUp(server, freshEmail()).catch(() => null)
      if (user !== null) acknowledged.push(user.token)
      await sleep(PAUSE)
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

t.test('two workers of which one ends, or their writer', async t => {
  const databaseFile = await newDatabaseFile(t)
  const { server, lost, endThread } = await startVulnerable(t, databaseFile)

  for (const [way, title] of Object.entries({
    throw: 'an unexpected error',
    exit: 'an exit',
    memory: 'a full heap',
  } as const))
    await t.test(`a worker that ends by ${title} is replaced, and nothing acknowledged is lost`, async t => {
      const [listeningBefore, lostBefore] = [listeningIn(server), lost()]
      const { acknowledged, acknowledges, stop } = startSignUps(server)
      await acknowledges(10)
      t.ok(await endThread('worker', way as Way), 'one worker has ended')
      await until(
        () => listeningIn(server),
        count => count > listeningBefore,
        DEADLINE,
      )
      await stop()
      t.equal(listeningIn(server), listeningBefore + 1)
      t.equal(lost(), lostBefore + 1)
      t.equal(server.process.exitCode, null)
      for (const token of acknowledged) t.equal(await remoteAccountStatus(server, token), 200)
    })

  await t.test(
    'a lost writer thread is replaced for every worker, and nothing acknowledged is lost',
    async t => {
      const lostBefore = lost()
      const { acknowledged, acknowledges, stop } = startSignUps(server)
      await acknowledges(10)
      t.ok(await endThread('writer', 'exit'))
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
      t.equal(lost(), lostBefore, 'no worker has ended')
    },
  )

  await t.test('a worker that starts while another database is at the path never reads it', async t => {
    const [listeningBefore, lostBefore] = [listeningIn(server), lost()]
    const { token } = await remoteSignUp(server, freshEmail())
    const statuses = async (): Promise<number[]> => {
      const responses = await onEach(openConnections(t, server), { path: '/account', headers: bearer(token) })
      return [...new Set(responses.map(({ status }) => status))]
    }
    t.strictSame(await statuses(), [200])
    renameSync(databaseFile, `${databaseFile}.aside`)
    writeFileSync(databaseFile, '')
    t.ok(await endThread('worker', 'exit'))
    // It has ended, and then it has tried to start or has started.
    await until(
      () => lost() - lostBefore + listeningIn(server) - listeningBefore,
      count => count >= 2,
      DEADLINE,
    )
    t.equal(listeningIn(server), listeningBefore, 'it does not start')
    t.strictSame(await statuses(), [503])
    renameSync(`${databaseFile}.aside`, databaseFile)
    await until(
      () => listeningIn(server),
      count => count === listeningBefore + 1,
      DEADLINE,
    )
    t.strictSame(await until(statuses, found => found.join() === '200', DEADLINE), [200])
  })

  t.equal(await server.stop('SIGTERM'), 0)
})

t.test(
  'a stop under load, and a restart with one worker, keep everything that any worker has acknowledged',
  async t => {
    const databaseFile = await newDatabaseFile(t)
    const two = await startTwo(t, { databaseFile })
    const { acknowledged, acknowledges, stop } = startSignUps(two)
    await acknowledges(20)
    t.equal(await two.stop('SIGTERM'), 0)
    await stop()
    const one = await build(t, { env: { DATABASE_URL: `sqlite:${databaseFile}` } })
    for (const token of acknowledged) t.equal(await accountStatus(one, token), 200)
  },
)

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
