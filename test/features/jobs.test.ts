/** Jobs of features: one process of all runs them, by a lease with a fencing number (docs/design.md, "Features"). */
import t from 'tap'
import type { JobRun } from '#feature/declaration'
import { Jobs } from '#feature/jobs/jobs'
import type { JobStore } from '#feature/jobs/stored-jobs'
import { build as buildApp, logCapture } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { until } from '../support/until.ts'
import { feature, working } from './working.ts'

type App = Awaited<ReturnType<typeof buildApp>>

const PACE = { startWithin: 1, maxWait: 5 }
const LEASE = 30_000
const HOUR = 3_600_000

await onEnginesOfRun(t, async (t, { newDatabase }) => {
  const storeOf = (app: App) => app.services.storage.features.jobs as JobStore

  t.test('of several instances one runs a job, once in its interval', async t => {
    const DATABASE_URL = await newDatabase(t)
    const runs: JobRun[] = []
    let now = Date.now()
    const counted = working(async run => void runs.push(run))
    const options = { env: { DATABASE_URL }, features: [counted], jobPace: PACE, clock: () => now }
    const apps = [await buildApp(t, options), await buildApp(t, options), await buildApp(t, options)]
    /** The run has ended, and the next one is due in an hour. */
    const isDone = async () => (await storeOf(apps[0] as App).notBefore('working.work')) === now + HOUR
    for (const round of [1, 2, 3, 4]) {
      await until(isDone, done => done, 10_000)
      t.equal(runs.length, round)
      if (round < 4) now += HOUR
    }
    t.same(
      runs.map(({ fence }) => fence),
      [1, 2, 3, 4],
    )
    t.same(
      runs.map(({ job }) => job),
      Array(4).fill('working.work'),
    )
    const snapshots = await Promise.all(apps.map(app => app.services.metrics.collect()))
    const succeeded = snapshots.map(snapshot =>
      Number(
        snapshot.gatehouse_job_runs_total?.find(
          ({ labels }) => labels === 'job="working.work",outcome="succeeded"',
        )?.value,
      ),
    )
    t.equal(
      succeeded.reduce((sum, count) => sum + count),
      4,
    )
  })

  t.test('a run that fails is logged, and repeated before its interval has ended', async t => {
    const log = logCapture()
    let runs = 0
    const failing = working(async () => {
      runs += 1
      if (runs < 3) throw new Error('not today')
    })
    const env = { DATABASE_URL: await newDatabase(t), LOG_LEVEL: 'error' }
    const app = await buildApp(t, { env, features: [failing], jobPace: PACE, logStream: log.stream })
    await until(
      async () => runs,
      count => count === 3,
      10_000,
    )
    const failures = log.records().filter(({ msg }) => msg === 'a job failed, it is repeated')
    t.match(failures, [
      { job: 'working.work', err: { message: 'not today' } },
      { job: 'working.work', err: { message: 'not today' } },
    ])
    t.equal(failures.length, 2)
    const snapshot = async () =>
      (await app.services.metrics.collect()).gatehouse_job_runs_total?.filter(({ labels }) =>
        labels.startsWith('job="working.work"'),
      )
    t.match(await until(snapshot, values => values?.[0]?.value === 1, 10_000), [
      { labels: 'job="working.work",outcome="succeeded"', value: 1 },
      { labels: 'job="working.work",outcome="failed"', value: 2 },
    ])
  })

  t.test('a stop aborts the run, and another instance continues at once', async t => {
    const DATABASE_URL = await newDatabase(t)
    const env = { DATABASE_URL }
    const started: JobRun[] = []
    const waiting = working(async run => {
      started.push(run)
      if (started.length > 1) return
      const { promise, resolve } = Promise.withResolvers<void>()
      run.signal.addEventListener('abort', () => resolve())
      await promise
      run.signal.throwIfAborted()
    })
    const first = await buildApp(t, { env, features: [waiting], jobPace: PACE })
    await until(
      async () => started.length,
      count => count === 1,
      10_000,
    )
    await buildApp(t, { env, features: [waiting], jobPace: PACE })
    await first.close()
    t.ok(started[0]?.signal.aborted)
    await until(
      async () => started.length,
      count => count === 2,
      10_000,
    )
    t.equal(started[1]?.fence, 2)
  })

  t.test(
    'a lease that has ended goes to another process; the first one changes nothing any more',
    async t => {
      const app = await buildApp(t, { env: { DATABASE_URL: await newDatabase(t) } })
      const { takeLease, renewLease, endLease, notBefore } = storeOf(app)
      const now = 1_000_000
      t.equal(await notBefore('a.b'), 0)
      t.same(await takeLease('a.b', now, HOUR, LEASE), { fence: 1, failures: 0 })
      t.equal(await takeLease('a.b', now + LEASE - 1, HOUR, LEASE), null)
      t.equal(await renewLease('a.b', 1, now + 2 * LEASE), true)
      t.equal(await takeLease('a.b', now + 2 * LEASE - 1, HOUR, LEASE), null)
      t.same(await takeLease('a.b', now + 2 * LEASE, HOUR, LEASE), { fence: 2, failures: 0 })
      t.equal(await renewLease('a.b', 1, now + 9 * LEASE), false)
      await endLease('a.b', 1, now, 7)
      t.equal(await notBefore('a.b'), now + 3 * LEASE, 'the lease of the second process is as it was')
      await endLease('a.b', 2, now + HOUR, 1)
      t.equal(await notBefore('a.b'), now + HOUR)
      t.equal(await takeLease('a.b', now + HOUR - 1, HOUR, LEASE), null)
      t.equal(await takeLease('a.b', now - 60_000, HOUR, LEASE), null, 'the clock of another process')
      t.same(
        await takeLease('a.b', now - 10 * HOUR, HOUR, LEASE),
        { fence: 3, failures: 1 },
        'the clock was set back',
      )
      const outcomes = await Promise.all(Array.from({ length: 5 }, () => takeLease('b.c', now, HOUR, LEASE)))
      t.equal(outcomes.filter(outcome => outcome !== null).length, 1)
    },
  )

  t.test('a run that ignores its signal does not delay a stop', async t => {
    const app = await buildApp(t, { env: { DATABASE_URL: await newDatabase(t) } })
    const failures: string[] = []
    const started = Promise.withResolvers<void>()
    const run = (): Promise<void> => {
      started.resolve()
      return new Promise(() => undefined)
    }
    const jobs = new Jobs({
      jobs: [{ name: 'a.b', every: HOUR, run }],
      store: storeOf(app),
      clock: Date.now,
      onFailure: (job, error) => void failures.push(`${job}: ${(error as Error).message}`),
      onStoreFailure: error => t.fail(String(error)),
      closing: 10,
      pace: PACE,
    })
    jobs.start()
    await started.promise
    await jobs.close()
    t.same(failures, ['a.b: the run did not end when it was aborted'])
  })

  t.test('an operation sees whether its run has the newest lease', async t => {
    const env = { DATABASE_URL: await newDatabase(t) }
    const app = await buildApp(t, { env, features: [feature] })
    const { takeLease } = storeOf(app)
    const { isCurrent } = app.services.storage.features.working as {
      isCurrent(lease: { job: string; fence: number }): Promise<boolean>
    }
    await takeLease('a.b', 1, HOUR, LEASE)
    t.equal(await isCurrent({ job: 'a.b', fence: 1 }), true)
    t.equal(await isCurrent({ job: 'a.b', fence: 2 }), false)
    await takeLease('a.b', 1 + LEASE, HOUR, LEASE)
    t.equal(await isCurrent({ job: 'a.b', fence: 1 }), false)
    t.equal(await isCurrent({ job: 'a.b', fence: 2 }), true)
  })
})
