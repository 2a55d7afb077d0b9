/** One machine, several processes on one PostgreSQL (`WORKERS`, DESIGN §7). */
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { freePort } from '../../scripts/postgres-server.ts'
import { createDatabase } from '../support/postgres.ts'
import { type Running, spawnServer, startServer } from '../support/process.ts'
import { until } from '../support/until.ts'

t.jobs = 3

/** Milliseconds until a condition that does not come true counts as failed. */
const DEADLINE = 20_000

const comesTrue = (condition: () => boolean): Promise<boolean> => until(condition, Boolean, DEADLINE)

/** The processes that have said that they listen, in the order in which they did. */
const workersOf = (server: Running): number[] =>
  server
    .output()
    .split('\n')
    .filter(line => line.includes('listening at'))
    .map(line => JSON.parse(line).pid)

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const statusOf = (server: Running, path: string): Promise<number> =>
  fetch(server.url + path, { headers: { connection: 'close' } }).then(
    response => response.status,
    () => 0,
  )

/** The port that the system chooses is shared by Node, a given one by the kernel. */
const start = async (t: Test, port: string): Promise<Running> =>
  startServer(t, { env: { WORKERS: '2', PORT: port, DATABASE_URL: await createDatabase(t) } })

for (const chosenBy of ['the system', 'us']) {
  t.test(`workers share a port chosen by ${chosenBy}, and one that is lost is replaced`, async t => {
    const server = await start(t, chosenBy === 'us' ? String(await freePort()) : '0')
    t.ok(await comesTrue(() => workersOf(server).length === 2), 'both listen')
    const [lost = 0, other = 0] = workersOf(server)
    for (let request = 0; request < 20; request += 1) t.equal(await statusOf(server, '/ready'), 200)
    process.kill(lost, 'SIGKILL')
    t.ok(await comesTrue(() => workersOf(server).length === 3), 'another one listens')
    t.equal(await statusOf(server, '/ready'), 200)
    t.ok(isAlive(other), 'the other one goes on')
    t.match(server.output(), 'a worker ended, another takes its place')
    t.equal(await server.stop('SIGTERM'), 0)
    t.notOk(workersOf(server).some(isAlive), 'nobody is left')
    t.equal(server.output().match(/"stopped"/g)?.length, 2, 'both have drained')
  })
}

t.test('a stop reaches a worker that is still starting', async t => {
  // It listens with the first of the two.
  const server = await start(t, '0')
  t.equal(await server.stop('SIGTERM'), 0)
  t.notOk(workersOf(server).some(isAlive), 'nobody is left')
})

t.test('workers do not outlive the first process', async t => {
  const server = await start(t, '0')
  t.ok(await comesTrue(() => workersOf(server).length === 2))
  const workers = workersOf(server)
  await server.stop('SIGKILL')
  t.ok(await comesTrue(() => !workers.some(isAlive)))
})

t.test('workers that cannot start end the first process, which says why once for each', async t => {
  const child = spawnServer({
    WORKERS: '2',
    PORT: '0',
    DATABASE_URL: 'postgres://nobody:canary@127.0.0.1:1/nowhere',
    JWT_SECRET: 'a-secret-of-enough-characters-0123456789',
  })
  t.teardown(() => child.kill('SIGKILL'))
  let output = ''
  child.stderr?.on('data', chunk => {
    output += chunk
  })
  const [code] = await once(child, 'exit')
  t.equal(code, 1)
  t.match(output, /Gatehouse cannot start: the database: connect ECONNREFUSED/)
  t.notMatch(output, 'canary')
})
