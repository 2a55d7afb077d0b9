/** Background tasks of features: they run in every process for as long as the service does (docs/design.md, "Features"). */
import { once } from 'node:events'
import t from 'tap'
import { BackgroundTasks } from '#feature/jobs/background-tasks'
import { build as buildApp, logCapture } from '../support/build.ts'
import { until } from '../support/until.ts'
import { busy } from './busy.ts'

const WAIT = 20_000

t.test('a task that fails is logged and starts again; it ends with the service', async t => {
  const signals: AbortSignal[] = []
  const ended: string[] = []
  const log = logCapture()
  const working = busy(async signal => {
    signals.push(signal)
    if (signals.length < 3) throw new Error('not today')
    await once(signal, 'abort')
    await new Promise(setImmediate)
    ended.push('the task')
  })
  const app = await buildApp(t, {
    features: [working],
    env: { LOG_LEVEL: 'error' },
    logStream: log.stream,
  })
  await until(
    () => signals.length,
    length => length === 3,
    WAIT,
  )
  t.match(log.records(), [
    { task: 'busy.work', err: { message: 'not today' }, msg: 'a background task failed, it starts again' },
    { task: 'busy.work' },
  ])
  t.notOk(signals[2]?.aborted)
  await app.close()
  ended.push('the service')
  t.same(ended, ['the task', 'the service'], 'the stop waits for the task')
  t.equal(signals.length, 3)
  t.equal(log.records().length, 2, 'the end by the signal is no failure')
})

t.test('a task gets what the services of its feature get, in every process', async t => {
  const clocks: number[] = []
  const working = busy(async (signal, now) => {
    clocks.push(now)
    await once(signal, 'abort')
  })
  for (const now of [1, 2]) await buildApp(t, { features: [working], clock: () => now })
  await until(
    () => clocks.length,
    length => length === 2,
    WAIT,
  )
  t.same(clocks, [1, 2])
})

t.test('a stop does not wait for a task that ignores the signal', async t => {
  const stuck = Promise.withResolvers<void>()
  const tasks = new BackgroundTasks({
    tasks: [{ name: 'busy.work', run: () => stuck.promise }],
    onFailure: () => t.fail('it does not fail'),
    closing: 1,
  })
  tasks.start()
  await tasks.close()
  t.pass('it is given up')
  stuck.resolve()
})
