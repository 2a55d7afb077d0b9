/** Durable consumers of events: at least once, in order, in one process of all (docs/design.md, "Features"). */
import t from 'tap'
import type { ConsumerStore } from '#feature/consumers/stored-consumers'
import type { LoggedEvent } from '#feature/declaration'
import type { JobStore } from '#feature/jobs/stored-jobs'
import { build as buildApp, logCapture, signUp, updateUser } from '../support/build.ts'
import { runCommand } from '../support/cli.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { readLog } from '../support/event-log.ts'
import { readMetrics } from '../support/metrics.ts'
import { until } from '../support/until.ts'
import { watching } from './watching.ts'

type App = Awaited<ReturnType<typeof buildApp>>

const PACE = { startWithin: 1, maxWait: 50 }
const WAIT = 20_000
const NAME = 'watching.watch'

/** A consumer that collects. */
const collector = (types?: readonly string[]) => {
  const events: LoggedEvent[] = []
  const feature = watching(event => void events.push(event), types)
  const ids = () => events.map(({ id }) => id)
  return { feature, events, ids }
}

await onEnginesOfRun(t, async (t, { newDatabase }) => {
  const storeOf = (app: App) => app.services.storage.features.consumers as ConsumerStore
  /** Ids of the log from its oldest event on. */
  const logOf = async (app: App, type?: string) => {
    const events = await readLog(app)
    return events.filter(event => type === undefined || event.type === type).map(({ id }) => id)
  }

  t.test('of several instances one gets every event once, in order', async t => {
    const DATABASE_URL = await newDatabase(t)
    const collected = collector()
    const options = { env: { DATABASE_URL }, features: [collected.feature], jobPace: PACE }
    const apps = [await buildApp(t, options), await buildApp(t, options)] as const
    for (const app of [...apps, ...apps]) {
      const { id } = await signUp(app)
      await updateUser(app, id, { disabled: true })
    }
    const log = await logOf(apps[0])
    await until(
      async () => collected.ids(),
      ids => ids.length >= log.length,
      WAIT,
    )
    t.same(collected.ids(), log)
    t.match(collected.events[0], { type: 'user.signed-up', actor: { type: 'user' } })
  })

  t.test('types select; a new consumer begins at the end of the log', async t => {
    const DATABASE_URL = await newDatabase(t)
    const app = await buildApp(t, { env: { DATABASE_URL } })
    await signUp(app)
    const collected = collector(['user.disabled'])
    const other = await buildApp(t, {
      env: { DATABASE_URL },
      features: [collected.feature],
      jobPace: PACE,
    })
    const { id } = await signUp(app)
    await updateUser(app, id, { disabled: true })
    await until(
      async () => collected.ids(),
      ids => ids.length > 0,
      WAIT,
    )
    t.same(collected.ids(), await logOf(other, 'user.disabled'))
  })

  t.test('what happens while no process runs the consumer is not lost', async t => {
    const DATABASE_URL = await newDatabase(t)
    const collected = collector()
    const options = { env: { DATABASE_URL }, features: [collected.feature], jobPace: PACE }
    const first = await buildApp(t, options)
    await signUp(first)
    await until(
      async () => collected.ids(),
      ids => ids.length === 1,
      WAIT,
    )
    await first.close()
    const without = await buildApp(t, { env: { DATABASE_URL } })
    for (let count = 0; count < 3; count += 1) await signUp(without)
    const third = await buildApp(t, options)
    const log = await logOf(third)
    await until(
      async () => collected.ids(),
      ids => ids.length >= log.length,
      WAIT,
    )
    t.same(collected.ids(), log, 'each once: a graceful stop stores the cursor')
  })

  t.test('an event whose handler fails is repeated, and later ones wait', async t => {
    const DATABASE_URL = await newDatabase(t)
    const handled: string[] = []
    let failures = 0
    const failing = watching((event, { attempt }) => {
      if (event.type === 'user.disabled' && attempt < 3) {
        failures += 1
        throw new Error('not today')
      }
      handled.push(event.type)
    })
    const log = logCapture()
    const app = await buildApp(t, {
      env: { DATABASE_URL, LOG_LEVEL: 'error' },
      features: [failing],
      jobPace: PACE,
      consumerBackOff: 5,
      logStream: log.stream,
    })
    const { id } = await signUp(app)
    await updateUser(app, id, { disabled: true })
    await updateUser(app, id, { disabled: false })
    await until(
      async () => handled,
      all => all.includes('user.enabled'),
      WAIT,
    )
    t.same(handled, ['user.signed-up', 'user.disabled', 'user.enabled'])
    t.equal(failures, 2)
    t.match(
      log.records().filter(({ consumer }) => consumer === NAME),
      [{ err: { message: 'not today' }, type: 'user.disabled' }, {}],
    )
    const metrics = await readMetrics(app)
    t.equal(metrics.sum('gatehouse_consumer_events_total', { consumer: NAME, outcome: 'handled' }), 3)
    t.equal(metrics.sum('gatehouse_consumer_events_total', { consumer: NAME, outcome: 'failed' }), 2)
  })

  t.test('operators see a consumer that fails, leave its event out, and repeat events', async t => {
    const DATABASE_URL = await newDatabase(t)
    const handled: string[] = []
    const failing = watching(event => {
      if (event.type === 'user.disabled') throw new Error('never')
      handled.push(event.type)
    })
    const app = await buildApp(t, {
      env: { DATABASE_URL },
      features: [failing],
      jobPace: PACE,
      consumerBackOff: 5,
    })
    const cli = (...args: string[]) => runCommand([...args, '--database', DATABASE_URL])
    const { id } = await signUp(app)
    await updateUser(app, id, { disabled: true })
    await updateUser(app, id, { disabled: false })
    const stored = () => storeOf(app).findConsumer(NAME)
    const { failedEventId } = (await until(
      async () => stored(),
      consumer => (consumer?.failures ?? 0) > 1,
      WAIT,
    )) as { failedEventId: string }
    const listed = JSON.parse((await cli('consumers', 'list', '--json')).stdout)
    // A run counts what waits: the one that failed last may have begun before the second change.
    const metrics = await until(
      () => readMetrics(app),
      each => each.sum('gatehouse_consumer_waiting_events', { consumer: NAME }) === 2,
      WAIT,
    )
    t.ok(metrics.sum('gatehouse_consumer_lag_seconds', { consumer: NAME }) > 0)
    t.match(listed.results, [
      { name: NAME, waiting: 2, failures: Number, failedEvent: failedEventId, error: 'Error: never' },
    ])
    t.equal((await cli('consumers', 'skip', NAME)).code, 0)
    await until(
      async () => handled,
      all => all.includes('user.enabled'),
      WAIT,
    )
    t.same(handled, ['user.signed-up', 'user.enabled'])
    t.not((await cli('consumers', 'skip', NAME)).code, 0, 'it fails for no event')
    t.not((await cli('consumers', 'reset', 'nobody', '--to', 'end')).code, 0)
    t.equal((await cli('consumers', 'reset', NAME, '--to', 'start')).code, 0)
    await until(
      async () => handled,
      all => all.length === 3,
      WAIT,
    )
    t.same(handled.slice(2), ['user.signed-up'], 'then the event that fails')
    t.equal((await cli('consumers', 'reset', NAME, '--to', 'end')).code, 0)
    await signUp(app)
    await until(
      async () => handled,
      all => all.length === 4,
      WAIT,
    )
  })

  t.test('a run that has lost its lease does not move the cursor', async t => {
    const DATABASE_URL = await newDatabase(t)
    const app = await buildApp(t, { env: { DATABASE_URL } })
    const jobs = app.services.storage.features.jobs as JobStore
    const store = storeOf(app)
    await store.addConsumer('old', 'kind', { position: 5, id: '' }, 1)
    const lease = await jobs.takeLease('consumers.old', 1, 1_000, 1_000)
    const newer = await jobs.takeLease('consumers.old', 10_000_000, 1_000, 1_000)
    const identity = (fence = 0) => ({ run: { job: 'consumers.old', fence }, name: 'old', revision: 0 })
    const old = identity(lease?.fence)
    t.equal(await store.advanceConsumer(old, { position: 9, id: '' }, 2), 'leaseLost')
    t.equal(
      await store.recordConsumerFailure(old, { position: 9, id: '' }, { failures: 1, error: '' }, 2),
      'leaseLost',
    )
    const current = identity(newer?.fence)
    t.equal(await store.advanceConsumer(current, { position: 9, id: 'b' }, 2), 'done')
    t.equal(await store.advanceConsumer(current, { position: 9, id: 'a' }, 3), 'changed', 'never back')
    t.equal(await store.advanceConsumer(current, { position: 8, id: 'z' }, 3), 'changed')
    t.equal(await store.setConsumer('old', 'kind', { position: 1, id: '' }, 4), true)
    t.equal(await store.advanceConsumer(current, { position: 10, id: '' }, 5), 'changed', 'an operator has')
    t.match(await store.findConsumer('old'), { position: 1, revision: 1 })
  })

  t.test('a cursor of another engine continues behind its event', async t => {
    const DATABASE_URL = await newDatabase(t)
    const before = await buildApp(t, { env: { DATABASE_URL } })
    for (let count = 0; count < 3; count += 1) await signUp(before)
    const [, second = ''] = await logOf(before)
    await storeOf(before).addConsumer(NAME, 'elsewhere', { position: 1, id: second }, 1)
    const collected = collector()
    const app = await buildApp(t, {
      env: { DATABASE_URL },
      features: [collected.feature],
      jobPace: PACE,
    })
    await until(
      async () => collected.ids(),
      ids => ids.length > 0,
      WAIT,
    )
    t.same(collected.ids(), (await logOf(app)).slice(2))
  })
})
