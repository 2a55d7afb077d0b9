/** `WORKERS`: several processes of one machine on one PostgreSQL (docs/design.md, "Storage"). */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { freePort } from '../../scripts/postgres-server.ts'
import { temporaryFolder } from '../support/build.ts'
import { newDatabase } from '../support/postgres.ts'
import { pipelined, type Running, spawnServer, startServer, startWithOutput } from '../support/process.ts'
import { until } from '../support/until.ts'

t.jobs = 3

/** Milliseconds until a condition that does not come true counts as failed. */
const DEADLINE = 60_000

const comesTrue = (condition: () => boolean): Promise<boolean> => until(condition, Boolean, DEADLINE)

/** The processes that logged that they listen, in order. */
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

/** Node shares a port that the system chooses, the kernel a given one. */
const start = async (t: Test, port: string): Promise<Running> =>
  startServer(t, { env: { WORKERS: '2', PORT: port, DATABASE_URL: await newDatabase(t) } })

for (const chosenBy of ['the system', 'us']) {
  t.test(`workers share a port chosen by ${chosenBy}, and a lost worker is replaced`, async t => {
    const server = await start(t, chosenBy === 'us' ? String(await freePort()) : '0')
    t.ok(await comesTrue(() => workersOf(server).length === 2), 'both listen')
    const [lost = 0, other = 0] = workersOf(server)
    for (let request = 0; request < 20; request += 1) t.equal(await statusOf(server, '/ready'), 200)
    process.kill(lost, 'SIGKILL')
    t.ok(await comesTrue(() => workersOf(server).length === 3), 'another one listens')
    t.equal(await statusOf(server, '/ready'), 200)
    t.ok(isAlive(other), 'the other one goes on')
    t.match(server.output(), 'a worker exited and is replaced')
    t.equal(await server.stop('SIGTERM'), 0)
    t.notOk(workersOf(server).some(isAlive), 'no worker is left')
    t.equal(server.output().match(/"stopped"/g)?.length, 2, 'both have drained')
  })
}

t.test('a stop reaches a worker that is still starting', async t => {
  // It listens as soon as the first of the two does.
  const server = await start(t, '0')
  t.equal(await server.stop('SIGTERM'), 0)
  t.notOk(workersOf(server).some(isAlive), 'no worker is left')
})

t.test('workers end with the first process', async t => {
  const server = await start(t, '0')
  t.ok(await comesTrue(() => workersOf(server).length === 2))
  const workers = workersOf(server)
  await server.stop('SIGKILL')
  t.ok(await comesTrue(() => !workers.some(isAlive)))
})

t.test('workers that cannot start end the first process, which logs each reason once', async t => {
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

/** File descriptors that cannot be written, closed with the test. */
const UNWRITABLE: Record<string, (t: Test) => number> = {
  'a full disk': () => openSync('/dev/full', constants.O_WRONLY),
  'an unread pipe': t => {
    const path = join(temporaryFolder(t), 'log')
    execFileSync('mkfifo', [path])
    // Opened for reading and writing, so that neither end waits for the other.
    return openSync(path, constants.O_RDWR)
  },
  'a closed pipe': t => {
    const path = join(temporaryFolder(t), 'log')
    execFileSync('mkfifo', [path])
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const writer = openSync(path, constants.O_WRONLY)
    closeSync(reader)
    return writer
  },
}

for (const [title, open] of Object.entries(UNWRITABLE))
  t.test(`workers that log to ${title} serve, one is replaced, and all stop`, async t => {
    const fd = open(t)
    t.teardown(() => closeSync(fd))
    const env = { WORKERS: '2', LOG_REQUESTS: 'on', DATABASE_URL: await newDatabase(t) }
    const server = await startWithOutput(t, [fd], { env })
    t.equal(await pipelined(server.port, '/health', 1_000), 1_000)
    const children = `/proc/${server.process.pid}/task/${server.process.pid}/children`
    const workers = (): number[] => readFileSync(children, 'utf8').trim().split(' ').map(Number)
    const [lost = 0] = workers()
    process.kill(lost, 'SIGKILL')
    t.ok(await comesTrue(() => workers().length === 2 && !workers().includes(lost)), 'one is replaced')
    // The lost worker may have been the only one that listened.
    const responded = await until(
      () => pipelined(server.port, '/health', 500).catch(() => 0),
      count => count > 0,
      DEADLINE,
    )
    t.equal(responded, 500, 'and they are served')
    for (let connection = 0; connection < 3; connection += 1)
      t.equal(await pipelined(server.port, '/health', 500), 500)
    t.equal(await server.stop('SIGTERM'), 0)
    t.equal(server.output(), '', 'nothing on standard error')
  })
