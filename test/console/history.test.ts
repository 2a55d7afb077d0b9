/** The history of metrics: right over processes, restarts and clock changes, and bounded. */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import type { FeatureStore } from '#feature/declaration'
import { ConsoleHistory, RANGES, type RangeName } from '#features/console/history-curves'
import { consistentEstimates, HistoryRecorder } from '#features/console/history-recorder'
import type { storedConsole } from '#features/console/stored-console'
import { addValues, NO_VALUES } from '#features/console/stored-history'
import { createKey } from '../support/admin-keys.ts'
import { ADMIN_KEY, bearer, manualClock, signUp } from '../support/build.ts'
import { signedInTo } from '../support/console.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { until } from '../support/until.ts'

const MINUTE = 60_000
const DAY = 86_400_000
const SIGN_UPS = 'gatehouse_sign_ups_total{outcome="succeeded"}'

type Store = FeatureStore<typeof storedConsole.operations, typeof storedConsole.reads>

const storeOf = (app: FastifyInstance) => app.services.storage.features.console as Store

/** The sum of a count over all that a range shows. */
const sumIn = async (
  { consoleHistory }: { readonly consoleHistory: ConsoleHistory },
  range: Parameters<ConsoleHistory['read']>[0],
  name: string,
): Promise<number> => {
  const { buckets } = await consoleHistory.read(range)
  const { counts } = buckets.reduce((sum, { values }) => addValues(sum, values), NO_VALUES)
  return Number(counts[name] ?? 0)
}

t.test('a range reads at most 720 rows: a page with 2,160 took 155 ms of CPU', async t => {
  const lengths = { minute: MINUTE, 'quarter-hour': 15 * MINUTE, hour: 60 * MINUTE, day: DAY }
  const now = Date.UTC(2026, 5, 1, 10, 5)
  for (const range of Object.keys(RANGES) as RangeName[]) {
    const readHistory: Store['readHistory'] = (resolution, from) => {
      t.ok((now - from) / lengths[resolution] <= 720, range)
      return []
    }
    const history = new ConsoleHistory({ store: { readHistory } as Store, clock: () => now })
    await history.read(range)
  }
})

t.test('numbers of active users do not contradict each other', t => {
  t.same(consistentEstimates(12_090, [15_000, 10_002, 9_000]), [12_090, 12_090, 12_090])
  t.same(consistentEstimates(20_000, [15_000, 10_002, 18_000]), [15_000, 15_000, 18_000])
  t.same(consistentEstimates(10, [1, 2, 30]), [1, 2, 10])
  t.same(consistentEstimates(0, [0, 0, 0]), [0, 0, 0])
  t.end()
})

t.test('what is counted during the last write is written too', async t => {
  // The timer of the recorder does not keep the process.
  const alive = setInterval(() => undefined, 1_000)
  t.teardown(() => clearInterval(alive))
  const stop = new AbortController()
  let counted = 1
  const written: unknown[] = []
  const recorder = new HistoryRecorder({
    clock: () => 0,
    logger: { warn: (problem: unknown) => t.fail(String(problem)) },
    users: { estimate: async () => 0 },
    readKeptMetrics: async () => [{ metric: 'a', labels: '', isGauge: false, value: counted }],
    store: {
      addHistory: async (_spans: unknown, { counts }: { readonly counts: unknown }) => {
        written.push(counts)
        if (stop.signal.aborted) return
        counted = 3
        stop.abort()
      },
    },
  } as unknown as ConstructorParameters<typeof HistoryRecorder>[0])
  await recorder.run(stop.signal)
  t.strictSame(written, [{ a: 1 }, { a: 2 }])
})

await onEnginesOfRun(t, async (t, { build, emptyDatabase }) => {
  const env = {
    CONSOLE: 'on',
    ENCRYPTION_KEY: 'test-encryption-key-0123456789abcdef0123456789abcdef',
  }

  t.test('every process adds what it has counted, when it stops too', async t => {
    const shared = { ...env, DATABASE_URL: await emptyDatabase(t) }
    const clock = manualClock(Date.UTC(2026, 5, 1, 10, 5))
    const first = await build(t, { env: shared, clock: clock.now })
    await signUp(first)
    await signUp(first)
    await first.close()
    // A clock that was set back adds to former rows.
    clock.advance(-20 * MINUTE)
    const second = await build(t, { env: shared, clock: clock.now })
    await signUp(second)
    await second.close()
    clock.advance(30 * MINUTE)
    const third = await build(t, { env: shared, clock: clock.now })
    for (const range of ['hour', 'day', 'month', 'quarter'] as const)
      t.equal(await sumIn(third.services, range, SIGN_UPS), 3, range)
  })

  t.test('what processes add at the same time is added up', async t => {
    const clock = manualClock(Date.UTC(2026, 5, 1, 10, 5))
    const app = await build(t, { env, clock: clock.now })
    const span = {
      resolution: 'minute',
      beginsAt: clock.now() - 5 * MINUTE,
      expiresAt: clock.now() + DAY,
    } as const
    const add = () =>
      storeOf(app).addHistory([span], { counts: { a: 1, b: [0, 1, 2] }, gauges: { c: Math.random() } })
    await Promise.all(Array.from({ length: 20 }, add))
    const [row] = await storeOf(app).readHistory('minute', span.beginsAt)
    t.match(row?.values, { counts: { a: 20, b: [0, 20, 40] } })
  })

  t.test('rows are removed: minutes after a day, hours after 90 days', async t => {
    const shared = { ...env, DATABASE_URL: await emptyDatabase(t) }
    const clock = manualClock()
    const first = await build(t, { env: shared, clock: clock.now })
    await signUp(first)
    await first.close()
    const rowsAfter = async (milliseconds: number) => {
      clock.advance(milliseconds)
      const app = await build(t, {
        env: shared,
        clock: clock.now,
        cleanUpPace: { startWithin: 1, interval: 20, pause: 1 },
      })
      const read = async () =>
        (await Promise.all((['minute', 'hour'] as const).map(each => storeOf(app).readHistory(each, 0)))).map(
          rows => rows.filter(({ values }) => SIGN_UPS in values.counts).length,
        )
      return { app, read }
    }
    const later = await rowsAfter(DAY + 2 * MINUTE)
    await until(later.read, ([minutes]) => minutes === 0, 20_000)
    t.strictSame(await later.read(), [0, 1])
    await later.app.close()
    const muchLater = await rowsAfter(91 * DAY)
    await until(muchLater.read, ([, hours]) => hours === 0, 20_000)
    t.strictSame(await muchLater.read(), [0, 0])
  })
})

await onEnginesOfRun(t, async (t, { build }) => {
  t.test(
    'the overview has plots with a title, units and a table, for keys that may read metrics',
    async t => {
      const clock = manualClock(Date.UTC(2026, 5, 1, 10, 5))
      const app = await build(t, {
        clock: clock.now,
        env: { CONSOLE: 'on', ENCRYPTION_KEY: 'test-encryption-key-0123456789abcdef0123456789abcdef' },
      })
      const { token } = await signUp(app)
      await app.inject({ url: '/account', headers: bearer(token) })
      await storeOf(app).addHistory(
        [{ resolution: 'minute', beginsAt: clock.now() - MINUTE, expiresAt: clock.now() + DAY }],
        {
          counts: {
            [SIGN_UPS]: 7,
            'gatehouse_sign_ins_total{method="password",outcome="succeeded"}': 5,
            'http_server_request_duration_seconds{status="200"}': [0, 99, 0, 0, 0, 0, 0, 0, 0, 1],
          },
          gauges: { 'active users{span="hour"}': 3, users: 1_234 },
        },
      )
      const client = await signedInTo(app, ADMIN_KEY)
      await client.open('/console?range=hour')
      t.match(client.page, 'aria-label="Sign-ups, per minute: succeeded 7"')
      t.match(
        client.page,
        '<th scope="col">succeeded</th></tr></thead>\n<tbody><tr><th scope="row">10:04</th><td>7</td></tr>',
      )
      t.match(client.page, '10:04 UTC\nsucceeded: 7</title>', 'a pointer shows the values')
      t.match(client.page, 'Password, succeeded <strong>5</strong>', 'the legend has the latest values')
      t.match(client.page, /p50 <strong>0\.\d+ ms<\/strong>/)
      t.match(client.page, /<dt>Users, about<\/dt><dd>1,234<\/dd>/)
      t.notMatch(client.page, /NaN|Infinity|undefined/)
      const blind = await signedInTo(app, (await createKey(app, ['status:read'])).text)
      t.notMatch(blind.page, /plot-body|1,234/)
    },
  )
})
