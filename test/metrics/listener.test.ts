/** The listener of METRICS_PORT, alone and in a host application (docs/design.md, "Observability"). */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Fastify from 'fastify'
import t from 'tap'
import gatehouse from '../../src/gatehouse.ts'
import { asAdmin, build, logCapture } from '../support/build.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { buildHost, hostConfig, signUpAt } from '../support/host.ts'
import { fetchMetrics, metricsUrlIn, parseMetrics } from '../support/metrics.ts'
import { startServer } from '../support/process.ts'

const REQUESTS = 'http_server_request_duration_seconds_count'

const isRefused = (url: string): Promise<boolean> =>
  fetch(url).then(
    () => false,
    () => true,
  )

/** An app whose metrics are at a port that the system chooses. */
const buildWithListener = async (t: Parameters<typeof build>[0]) => {
  const log = logCapture()
  const app = await build(t, { env: { METRICS_PORT: '0' }, hasher: quickHashing, logStream: log.stream })
  return { app, url: metricsUrlIn(log.text()) }
}

t.test('METRICS_PORT serves the metrics, without a key, and nothing else', async t => {
  const { app, url } = await buildWithListener(t)
  t.match(
    url,
    /^http:\/\/127\.0\.0\.1:\d+\/metrics$/,
    'the log names the address, by default of this machine',
  )
  await app.inject('/health')
  const response = await fetch(url)
  t.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  const values = parseMetrics(await response.text())
  t.equal(values.sum(REQUESTS, { route: '/health' }), 1)
  const { body } = await app.inject({ url: '/admin/metrics', headers: asAdmin })
  t.same([...parseMetrics(body).types], [...values.types], 'GET /admin/metrics has the same metrics')

  const head = await fetch(`${url}?x=1`, { method: 'HEAD' })
  t.same([head.status, await head.text()], [200, ''])
  for (const path of ['/', '/health', '/metrics/', '/admin/metrics']) {
    const other = await fetch(new URL(path, url))
    t.equal(other.status, 404, path)
    t.same(await other.json(), { errors: { global: ['There is no such route'] } })
  }
  const post = await fetch(url, { method: 'POST', body: 'x' })
  t.same([post.status, post.headers.get('allow')], [405, 'GET, HEAD'])
  t.equal((await app.inject('/metrics')).statusCode, 404, 'the service itself does not serve them')
  t.equal((await fetchMetrics(url)).sum(REQUESTS, { route: '/metrics' }), 0, 'reading is no request')
})

t.test('the listener closes with the service, also with an idle connection', async t => {
  const { app, url } = await buildWithListener(t)
  await fetchMetrics(url)
  const start = performance.now()
  await app.close()
  t.ok(performance.now() - start < 3_000)
  t.ok(await isRefused(url))
})

t.test('without METRICS_PORT there is no listener', async t => {
  const listeners = () => process.getActiveResourcesInfo().filter(name => name === 'TCPServerWrap').length
  const ofOthers = listeners()
  const log = logCapture()
  const app = await build(t, { logStream: log.stream })
  await app.listen({ port: 0, host: '127.0.0.1' })
  t.equal(metricsUrlIn(log.text()), '')
  t.equal(listeners(), ofOthers + 1, 'that of the service')
})

t.test('a process serves metrics while it drains, and stops in time', async t => {
  const server = await startServer(t, { env: { METRICS_PORT: '0', DRAIN_DELAY: '1s' } })
  const url = metricsUrlIn(server.output())
  t.equal((await fetchMetrics(url)).sum('gatehouse_store_up'), 1)
  const stopped = server.stop('SIGTERM')
  t.equal((await fetchMetrics(url)).sum('gatehouse_store_up'), 1, 'while it drains')
  t.equal(await stopped, 0)
  t.ok(await isRefused(url))
})

t.test('a host application counts requests of the service, not its own', async t => {
  const host = await buildHost(t, { config: { ...hostConfig(t), METRICS_PORT: undefined } })
  host.get('/hello', async () => 'hello')
  for (const url of ['/hello', '/hello', '/nowhere', '/auth/health', '/auth/nowhere']) await host.inject(url)
  await signUpAt(host)
  const { body } = await host.inject({ url: '/auth/admin/metrics', headers: asAdmin })
  const values = parseMetrics(body)
  t.equal(values.sum(REQUESTS), 3)
  t.equal(values.sum(REQUESTS, { route: '/auth/health' }), 1, 'the route is the whole template')
  t.equal(values.sum(REQUESTS, { route: 'unknown' }), 1)
})

t.test('two services of a process count apart, each at its own port', async t => {
  const log = logCapture()
  const configs = [hostConfig(t), hostConfig(t)].map(config => ({ ...config, METRICS_PORT: 0 }))
  const host = Fastify({ logger: { stream: log.stream } })
  t.teardown(() => host.close())
  for (const [index, config] of configs.entries())
    host.register(async scope => void (await scope.register(gatehouse, { prefix: `/${index}`, config })))
  await host.ready()
  const urls = [...log.text().matchAll(/http:\S+\/metrics/g)].map(([url]) => url)
  t.equal(new Set(urls).size, 2)
  for (let request = 0; request < 3; request += 1) await host.inject('/0/health')
  await host.inject('/1/health')
  const counts = await Promise.all(urls.map(async url => (await fetchMetrics(url)).sum(REQUESTS)))
  t.same(counts.sort(), [1, 3])
})

t.test('a port in use keeps a host application from becoming ready', async t => {
  const other = createServer().listen(0, '127.0.0.1')
  t.teardown(() => other.close())
  await new Promise(resolve => other.once('listening', resolve))
  const { port } = other.address() as AddressInfo
  const host = await buildHost(t, { config: { METRICS_PORT: port } })
  const message = `Port ${port} of 127.0.0.1 is in use. Set METRICS_PORT to another one, or end the process that uses it`
  await t.rejects(async () => void (await host.ready()), { message })
})

t.test('errors of the listener have the error body', async t => {
  const { app, url } = await buildWithListener(t)
  app.services.metrics.collect = async () => {
    throw new Error('canary')
  }
  const response = await fetch(url)
  t.equal(response.status, 500)
  t.same(await response.json(), { errors: { global: ['Something went wrong'] } })
})
