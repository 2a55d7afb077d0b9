/** examples/observability and the table of docs/operations.md, compared with the live endpoint (docs/design.md, "Observability"). */
import { execFile, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { metricsOf } from '#feature/assembly'
import { FEATURES } from '#features/own'
import { asAdmin, build, signUp, temporaryFolder } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import {
  fetchMetrics,
  type MetricValues,
  metricsUrlIn,
  parseMetrics,
  readMetrics,
} from '../support/metrics.ts'
import { newDatabase } from '../support/postgres.ts'
import { startServer } from '../support/process.ts'
import { until } from '../support/until.ts'

const PROJECT = join(import.meta.dirname, '..', '..')
const EXAMPLE = join(PROJECT, 'examples', 'observability')

interface Panel {
  readonly title: string
  readonly targets?: readonly { readonly expr: string }[]
}

const dashboard: { readonly panels: readonly Panel[]; readonly templating: { list: { query: string }[] } } =
  JSON.parse(readFileSync(join(EXAMPLE, 'dashboard.json'), 'utf8'))

const QUERIES = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ title, expr })),
)

const RULES = readFileSync(join(EXAMPLE, 'rules.yml'), 'utf8')

const METRIC = /\b(?:http_server|gatehouse|process|nodejs)_\w+/g

/** Every metric of a service on each engine, of one with a replica, and of one with workers. */
const liveMetrics = async (t: Test): Promise<MetricValues[]> => {
  const found: MetricValues[] = []
  await onEnginesOfRun(t, async (t, { build: buildOnEngine }) => {
    const app = await buildOnEngine(t, { hasher: quickHashing })
    await signUp(app)
    // On PostgreSQL the lag is known once the feed is connected.
    const isComplete = ({ types }: MetricValues) =>
      types.has('gatehouse_sqlite_writer_waiting') || types.has('gatehouse_invalidation_lag_seconds')
    found.push(await until(() => readMetrics(app), isComplete, 10_000))
  })
  const DATABASE_URL = await newDatabase(t)
  // The primary itself may be named as the replica.
  const withReplica = await build(t, { env: { DATABASE_URL, DATABASE_READ_URL: DATABASE_URL } })
  const isLagKnown = ({ types }: MetricValues) => types.has('gatehouse_replica_lag_seconds')
  found.push(await until(() => readMetrics(withReplica), isLagKnown, 10_000))
  const env = { WORKERS: '2', METRICS_PORT: '0', DATABASE_URL: await newDatabase(t) }
  const server = await startServer(t, { env })
  found.push(await fetchMetrics(metricsUrlIn(server.output())))
  return found
}

const live = await liveMetrics(t)
const types = new Map(live.flatMap(values => [...values.types]))
const names = new Set(live.flatMap(({ series }) => series.map(({ name }) => name)))

const hasPromtool = spawnSync('promtool', ['--version']).status === 0
const needsPromtool = { skip: !hasPromtool && 'promtool is not installed (Debian: prometheus)' }

const promtool = (...args: readonly string[]) => promisify(execFile)('promtool', args, { cwd: EXAMPLE })

t.test('every metric of the dashboard and of the rules exists', async t => {
  t.ok(QUERIES.length > 30)
  for (const { title, expr } of QUERIES) {
    const used = expr.match(METRIC) ?? []
    t.ok(used.length > 0, `${title} has a metric`)
    for (const name of used) t.ok(names.has(name), `${title}: ${name}`)
  }
  for (const name of RULES.match(METRIC) ?? []) t.ok(names.has(name), `rules.yml: ${name}`)
  for (const { query } of dashboard.templating.list)
    for (const name of query.match(METRIC) ?? []) t.ok(names.has(name), `variable: ${name}`)
})

/** Metrics of added features, and those that only services with jobs, consumers or webhooks have. The documents describe the others. */
const OF_FEATURES = new Set([
  ...Object.keys(metricsOf(FEATURES)),
  'gatehouse_job_runs_total',
  'gatehouse_consumer_events_total',
  'gatehouse_consumer_waiting_events',
  'gatehouse_consumer_lag_seconds',
  'gatehouse_webhook_attempts_total',
  'gatehouse_webhook_waiting_events',
  'gatehouse_webhook_lag_seconds',
])

const isOfCore = (name: unknown): boolean => !OF_FEATURES.has(String(name))

t.test('the dashboard shows every metric', async t => {
  const text = QUERIES.map(({ expr }) => expr).join('\n')
  for (const name of [...types.keys()].filter(isOfCore))
    t.match(text, new RegExp(`\\b${name}(_count|_sum|_bucket)?\\b`), name)
})

t.test('every label of the rules exists', async t => {
  const labels = new Set(live.flatMap(({ series }) => series.flatMap(each => Object.keys(each.labels))))
  for (const [, selector = ''] of RULES.matchAll(/\b(?:http_server|gatehouse)_\w+\{([^}]*)\}/g))
    for (const [, label = ''] of selector.matchAll(/(\w+)=?[=~!]/g)) t.ok(labels.has(label), label)
})

t.test('docs/operations.md has every metric with its labels', async t => {
  const [, section = ''] = readFileSync(join(PROJECT, 'docs/operations.md'), 'utf8').split('\n## Metrics\n')
  const documented = new Map(
    [...section.matchAll(/^- `(\w+)(?:\{([\w,]+)\})?`/gm)].map(([, name = '', labels = '']) => [
      name,
      labels.split(',').filter(Boolean).sort(),
    ]),
  )
  const labelsOf = (metric: string): string[] => {
    const labels = live.flatMap(({ series }) =>
      series
        .filter(({ name }) => name.replace(/_(bucket|sum|count)$/, '') === metric || name === metric)
        .flatMap(each => Object.keys(each.labels)),
    )
    return [...new Set(labels)].filter(label => label !== 'le').sort()
  }
  t.same([...documented.keys()].filter(isOfCore).sort(), [...types.keys()].filter(isOfCore).sort())
  for (const name of [...types.keys()].filter(isOfCore)) t.same(documented.get(name), labelsOf(name), name)
})

t.test('promtool accepts the metrics', needsPromtool, async t => {
  for (const { text } of live) {
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: text })
    t.equal(status, 0, `${stdout}${stderr}`)
  }
})

t.test(
  'promtool accepts the rules and the configuration, and the tests of the rules pass',
  needsPromtool,
  async t => {
    await t.resolves(promtool('check', 'rules', 'rules.yml'))
    await t.resolves(promtool('test', 'rules', 'rules.test.yml'))
    await t.resolves(promtool('check', 'config', 'prometheus.yml'))
  },
)

t.test('promtool accepts the queries of the dashboard', needsPromtool, async t => {
  const rules = QUERIES.map(({ expr }, index) => ({
    record: `query:${index}`,
    expr: expr.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*'),
  }))
  const file = join(temporaryFolder(t), 'queries.yml')
  // JSON is YAML.
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }))
  await t.resolves(promtool('check', 'rules', file))
})

t.test('a label with quotes and lines keeps the format', async t => {
  const app = await build(t, {
    extend: app => void app.get('/a"b\\c', async () => 'x'),
  })
  await app.inject('/a%22b%5Cc')
  const { body } = await app.inject({ url: '/admin/metrics', headers: asAdmin })
  t.match(body, 'route="/a\\"b\\\\c"')
  t.equal(parseMetrics(body).sum('http_server_request_duration_seconds_count', { status: '200' }), 1)
})
