/**
 * Mixed load for a long time on three instances on a replicated PostgreSQL: two of them are restarted in turn every minute,
 * and the primary is lost in the middle. No request fails, and no memory leaks.
 *
 * A restart empties the heap. So the heap of the third instance is measured, which is never restarted and has the same load.
 * Its heap is small, so that its caches, whose capacity follows the heap limit, are full before measuring begins.
 *
 * `npm run test:soak -- --minutes 20 --seed 1`
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startServer } from '../../../bench/processes.ts'
import { slope } from '../../../bench/statistics.ts'
import { ADMIN_KEY, JWT_SECRET } from '../../support/build.ts'
import { print, seedOf, startExperiment } from '../../support/experiment.ts'
import { createRandom } from '../../support/random.ts'
import { type Span, startPair } from '../instances/instance.ts'
import { Replicated } from '../instances/replicated.ts'
import { milliseconds, Report } from '../instances/report.ts'
import { Journal } from '../instances/response-checks.ts'
import { createRevocables } from '../instances/revocation-users.ts'
import { Balancer } from '../instances/rolling-client.ts'
import { startSoakLoad } from './soak-load.ts'

const MINUTE = 60_000

const USERS = 300

/** Milliseconds between two samples of the heap, and the fraction of samples that is skipped as warm-up. */
const LOOK = 5_000
const WARMING = 1 / 3

/**
 * MiB that each million requests may leak, and the number of requests from which on that is checked: with fewer, most of it
 * is code that V8 compiles late.
 */
const LEAK = { limit: 1, requests: 250_000 }

const MIB = 1_048_576

const SMALL_HEAP = { NODE_OPTIONS: '--max-old-space-size=64' }

/** Milliseconds until a started instance must be used again; and after a promotion until the service has recovered. */
const USED_AGAIN = 10_000
const RESTORED = 5_000

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '20' }, seed: { type: 'string' } },
})
const minutes = Number(values.minutes)
const seed = seedOf(values.seed)
const { context, cleanUp, abandon } = startExperiment((minutes + 5) * MINUTE)

const soak = async (): Promise<Report> => {
  const report = new Report('Soak: mixed load, rolling restarts, one failover')
  const journal = new Journal()
  const servers = await Replicated.start(context)
  const env = { DATABASE_URL: servers.url, DRAIN_DELAY: '2s' }
  const pair = await startPair(context, env)
  const measuredEnv = { ...env, ADMIN_KEY, JWT_SECRET, ...SMALL_HEAP }
  const measured = { name: 'C', ...(await startServer('src/server.ts', measuredEnv)) }
  context.teardown(() => measured.stop())
  const users = await createRevocables(pair[0], USERS, 'soak')
  const balancer = new Balancer([...pair, measured], journal)
  const disruptions: Span[] = []
  const load = startSoakLoad(balancer, pair, users, disruptions, journal, createRandom(seed))
  const begin = performance.now()
  const end = begin + minutes * MINUTE
  const codes: (number | null)[] = []
  const points: { x: number; y: number }[] = []

  const note = (what: string): void => print(`${Math.round((performance.now() - begin) / 1_000)} s: ${what}`)
  const restartEveryMinute = async (): Promise<void> => {
    for (let next = begin + MINUTE; next < end; next += MINUTE) {
      await sleep(Math.max(0, next - performance.now()))
      for (const instance of pair) {
        codes.push(await instance.stop('SIGTERM'))
        await instance.start()
        if (!(await balancer.uses(instance, USED_AGAIN))) report.failure(`${instance.name} is not used again`)
      }
      note(`restarted; ${journal.responses} responses; heap of C ${format(points.at(-1)?.y)}`)
    }
  }
  /** Half a minute from the restarts, so that only one disruption happens at a time. */
  const failOver = async (): Promise<void> => {
    await sleep((Math.floor(minutes / 2) + 0.5) * MINUTE)
    const span = { from: performance.now(), to: Number.POSITIVE_INFINITY }
    disruptions.push(span)
    span.to = (await servers.failOver('killed')) + RESTORED
    note('failed over')
    await servers.rebuild()
  }
  const measure = async (): Promise<void> => {
    while (performance.now() < end) {
      await sleep(LOOK)
      const y = (await measured.ask('heap')) / MIB
      points.push({ x: (load.responded.get(measured.name) ?? 0) / 1e6, y })
    }
  }
  await Promise.all([restartEveryMinute(), failOver(), measure()])
  await load.stop()
  await balancer.close()
  codes.push(...(await Promise.all(pair.map(instance => instance.stop('SIGTERM')))))

  const steady = points.slice(Math.ceil(points.length * WARMING))
  const leak = slope(steady)
  const { unavailable, rejected } = load.repeats()
  const by = [...load.responded].sort().map(([name, count]) => `${name} ${count}`)
  report.figure('minutes · restarts · failovers', `${minutes} · ${codes.length - 2} · ${disruptions.length}`)
  report.figure('responses', `${journal.responses} (${by.join(', ')})`)
  report.figure('slowest response', milliseconds(journal.slowest))
  report.figure(
    'repeated requests: 503 during the failover · refused connections',
    `${unavailable} · ${rejected}`,
  )
  report.figure(
    'heap of C, first and last after warming',
    `${format(steady.at(0)?.y)} · ${format(steady.at(-1)?.y)}`,
  )
  const checked = ((steady.at(-1)?.x ?? 0) - (steady.at(0)?.x ?? 0)) * 1e6
  const isConclusive = checked >= LEAK.requests
  report.figure(
    'slope of it',
    `${leak.toFixed(2)} MiB per million requests, over ${checked.toFixed(0)}${isConclusive ? '' : ': too few for a verdict'}`,
  )
  report.failures('failed requests', journal.failures)
  report.expect(
    !isConclusive || leak <= LEAK.limit,
    `the heap grows by ${leak.toFixed(2)} MiB per million requests`,
  )
  report.failures(
    'exit codes other than 0',
    codes.filter(code => code !== 0).map(code => `an instance ended with ${code}`),
  )
  return report
}

const format = (mebibytes = Number.NaN): string => `${mebibytes.toFixed(2)} MiB`

print(`seed ${seed}`)
try {
  const report = await soak()
  await cleanUp()
  process.exitCode = report.print() ? 0 : 1
} catch (error) {
  abandon(error)
}
