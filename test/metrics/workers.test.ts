/** With `WORKERS`, one endpoint has the metrics of all workers (docs/design.md, "Observability"). */
import t, { type Test } from 'tap'
import { asAdmin } from '../support/build.ts'
import { fetchMetrics, type MetricValues, metricsUrlIn, parseMetrics } from '../support/metrics.ts'
import { newDatabase } from '../support/postgres.ts'
import { type Running, startServer } from '../support/process.ts'
import { remoteSignUp } from '../support/remote-accounts.ts'
import { until } from '../support/until.ts'

const DEADLINE = 20_000

const HEALTH = { route: '/health' }
const REQUESTS = 'http_server_request_duration_seconds_count'

const workersOf = (server: Running): number[] =>
  [...server.output().matchAll(/"pid":(\d+)[^\n]*listening at/g)].map(([, pid]) => Number(pid))

/** Two workers that are ready. Node gives them connections in turn, because the system chooses the port. */
const startTwo = async (t: Test) => {
  const env = { WORKERS: '2', METRICS_PORT: '0', DATABASE_URL: await newDatabase(t) }
  const server = await startServer(t, { env })
  await until(
    () => workersOf(server).length,
    count => count === 2,
    DEADLINE,
  )
  const url = metricsUrlIn(server.output())
  return { server, url, read: () => fetchMetrics(url) }
}

/** Each request has its own connection. */
const sendToHealth = async (server: Running, count: number): Promise<void> => {
  for (let request = 0; request < count; request += 1)
    await (await fetch(`${server.url}/health`, { headers: { connection: 'close' } })).arrayBuffer()
}

const readAsAdmin = async (server: Running): Promise<MetricValues> => {
  const response = await fetch(`${server.url}/admin/metrics`, {
    headers: { ...asAdmin, connection: 'close' },
  })
  t.equal(response.status, 200)
  return parseMetrics(await response.text())
}

t.test('two workers', async t => {
  const { server, url, read } = await startTwo(t)

  t.test('counts are the sum of the workers, at the port and on each of them', async t => {
    t.match(url, /^http/, 'the first process listens')
    t.equal(server.output().match(/Metrics at/g)?.length, 1, 'only that one')
    await sendToHealth(server, 40)
    await remoteSignUp(server, 'user@example.com')
    const values = await read()
    t.equal(values.sum(REQUESTS, HEALTH), 40)
    t.equal(values.sum('gatehouse_sign_ups_total', { outcome: 'succeeded' }), 1)
    t.equal(values.sum('gatehouse_workers'), 2)
    t.equal(values.sum('gatehouse_store_up'), 1, 'of several, the least')
    t.equal(values.sum('gatehouse_build_info'), 1)
    t.equal(values.sum('gatehouse_worker_timeouts_total'), 0)
    for (let reading = 0; reading < 4; reading += 1)
      t.equal((await readAsAdmin(server)).sum(REQUESTS, HEALTH), 40, 'each worker has the sum')
  })

  t.test('a worker that does not respond delays nobody for long, and is counted', async t => {
    const before = await read()
    const [stalled = 0] = workersOf(server)
    process.kill(stalled, 'SIGSTOP')
    const start = performance.now()
    const values = await read()
    t.ok(performance.now() - start < 6_000, 'the wait is bounded')
    t.equal(values.sum('gatehouse_worker_timeouts_total'), 1)
    t.equal(values.sum(REQUESTS, HEALTH), before.sum(REQUESTS, HEALTH), 'its last counts remain')
    const memory = (each: MetricValues) => each.sum('nodejs_heap_size_limit_bytes')
    t.equal(memory(values), memory(before) / 2, 'its gauges are left out')
    process.kill(stalled, 'SIGCONT')
    const recovered = await until(read, each => memory(each) === memory(before), DEADLINE)
    t.equal(memory(recovered), memory(before))
  })

  t.test('counts of a worker that ends are kept, so that no sum decreases', async t => {
    const before = (await read()).sum(REQUESTS, HEALTH)
    t.ok(before > 0)
    const [lost = 0] = workersOf(server)
    process.kill(lost, 'SIGKILL')
    await until(
      () => workersOf(server).length,
      count => count === 3,
      DEADLINE,
    )
    await sendToHealth(server, 10)
    const values = await read()
    t.equal(values.sum(REQUESTS, HEALTH), before + 10)
    t.equal(values.sum('gatehouse_workers'), 2)
  })

  t.test('a stop closes the listener of the metrics', async t => {
    t.equal(await server.stop('SIGTERM'), 0)
    await t.rejects(fetch(url), 'the listener is closed')
  })
})
