/** The SDK: standard variables, workers, and a collector that is not there (docs/design.md, "Observability"). */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { freePort } from '../../scripts/postgres-server.ts'
import { type ReceivedSpan, startCollector } from '../support/collector.ts'
import { newDatabase } from '../support/postgres.ts'
import { type Running, startServer } from '../support/process.ts'
import { until } from '../support/until.ts'

t.jobs = 3

const DEADLINE = 20_000

const parent = (digit: string, flags: string) => ({
  traceparent: `00-${digit.repeat(32)}-${digit.repeat(16)}-${flags}`,
})

const getHealth = async ({ url }: Running, headers: Record<string, string> = {}): Promise<number> => {
  const response = await fetch(`${url}/health`, { headers: { connection: 'close', ...headers } })
  await response.arrayBuffer()
  return response.status
}

const warningsOf = (server: Running, text: string): string[] =>
  server
    .output()
    .split('\n')
    .filter(line => line.includes(text))

t.test('the standard variables name the service, its attributes, the headers and the whole URL', async t => {
  const { url, spans, requests } = await startCollector(t)
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${url}/tenant/spans`,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=acme',
    OTEL_SERVICE_NAME: 'accounts',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=staging,service.name=ignored',
    // Only the stop sends them.
    OTEL_BSP_SCHEDULE_DELAY: '3600000',
  }
  const server = await startServer(t, { env })
  t.equal(await getHealth(server), 200)
  t.strictSame(spans(), [])
  t.equal(await server.stop('SIGTERM'), 0)
  t.match(
    spans().map(({ name, resource }) => ({ name, resource })),
    [
      {
        name: 'GET /health',
        resource: {
          'service.name': 'accounts',
          'deployment.environment.name': 'staging',
          'service.instance.id': /^[\da-f-]{36}$/,
        },
      },
    ],
  )
  t.match(requests, [{ url: '/tenant/spans', headers: { 'x-tenant': 'acme' } }])
})

t.test('the base URL may have a path and a slash at its end', async t => {
  const { url, env, requests } = await startCollector(t)
  const server = await startServer(t, { env: { ...env, OTEL_EXPORTER_OTLP_ENDPOINT: `${url}/otlp/` } })
  await getHealth(server)
  await server.stop('SIGTERM')
  t.match(requests, [{ url: '/otlp/v1/traces' }])
})

/** The traces that a service with this sampler sends: of a request without a parent, and with a parent that is (not) sampled. */
const sampledBy = async (t: Test, sampler: Record<string, string>) => {
  const { env, spans } = await startCollector(t)
  const server = await startServer(t, { env: { ...env, ...sampler } })
  await getHealth(server, parent('1', '01'))
  await getHealth(server, parent('2', '00'))
  await getHealth(server)
  await server.stop('SIGTERM')
  const parentOf = ({ parentSpanId }: ReceivedSpan): string =>
    parentSpanId ? (parentSpanId.startsWith('1') ? 'sampled' : 'not sampled') : 'none'
  return { server, parents: spans().map(parentOf).sort() }
}

t.test('by default the sampling of the client counts', async t => {
  t.strictSame((await sampledBy(t, {})).parents, ['none', 'sampled'])
})

t.test('OTEL_TRACES_SAMPLER chooses another sampler', async t => {
  const ratio = { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' }
  t.strictSame((await sampledBy(t, ratio)).parents, ['sampled'])
  const always = await sampledBy(t, { OTEL_TRACES_SAMPLER: 'always_on' })
  t.strictSame(always.parents, ['none', 'not sampled', 'sampled'])
  const unknown = await sampledBy(t, { OTEL_TRACES_SAMPLER: 'jaeger_remote' })
  t.strictSame(unknown.parents, ['none', 'sampled'])
  t.equal(warningsOf(unknown.server, 'jaeger_remote').length, 1)
})

t.test('OTEL_SDK_DISABLED turns traces off', async t => {
  const { env, requests } = await startCollector(t)
  const server = await startServer(t, { env: { ...env, OTEL_SDK_DISABLED: 'true' } })
  t.equal(await getHealth(server), 200)
  t.equal(await server.stop('SIGTERM'), 0)
  t.strictSame(requests, [])
})

t.test('a collector that cannot be reached delays no request and no stop, and is logged once', async t => {
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await freePort()}`,
    OTEL_EXPORTER_OTLP_TIMEOUT: '200',
    OTEL_BSP_SCHEDULE_DELAY: '10',
  }
  const server = await startServer(t, { env })
  const failures = () => warningsOf(server, 'spans could not be sent').length
  t.equal(await getHealth(server), 200)
  t.equal(await until(failures, count => count > 0, DEADLINE), 1)
  for (let request = 0; request < 20; request += 1) t.equal(await getHealth(server), 200)
  t.equal(await server.stop('SIGTERM'), 0)
  t.equal(failures(), 1)
})

t.test('a collector that never responds delays the stop for its time limit only', async t => {
  const sockets = new Set<Socket>()
  const silent = createServer(socket => void sockets.add(socket.on('error', () => undefined)))
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    silent.close()
  })
  const { port } = silent.address() as { port: number }
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`, OTEL_BSP_SCHEDULE_DELAY: '10' }
  const server = await startServer(t, { env })
  t.equal(await getHealth(server), 200)
  await until(
    () => sockets.size,
    count => count > 0,
    DEADLINE,
  )
  t.equal(await getHealth(server), 200)
  t.equal(await server.stop('SIGTERM'), 0, 'the forced exit would be 1')
  t.equal(warningsOf(server, 'the last spans could not be sent in time').length, 1)
})

t.test('with WORKERS each worker is an instance of its own', async t => {
  const { env, spans } = await startCollector(t)
  const server = await startServer(t, {
    env: { ...env, WORKERS: '2', DATABASE_URL: await newDatabase(t) },
  })
  const instances = (): number => new Set(spans().map(({ resource }) => resource['service.instance.id'])).size
  const count = await until(
    async () => {
      await getHealth(server)
      return instances()
    },
    number => number === 2,
    DEADLINE,
  )
  t.equal(count, 2)
  t.equal(await server.stop('SIGTERM'), 0)
})
