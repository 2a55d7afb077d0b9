/** `WORKERS=2`: one of two dies, all stop, none can start. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Call, calls, send } from './http.ts'
import type { Part } from './part.ts'
import { milliseconds, Report } from './report.ts'
import { asLost, Journal } from './response-checks.ts'
import { halfSignUp, startWorkers, survivors, type Workers } from './worker-service.ts'
import { reject } from './workers-refused.ts'

const PASSWORD = 'a pass phrase for two workers'

/** Milliseconds until both workers have responded, until a killed one is replaced, and until all have ended. */
const START_LIMIT = 10_000
const REPLACE_LIMIT = 10_000
const END_LIMIT = 5_000

/** Milliseconds after a kill in which its replacement is due, or starts. */
const REPLACEMENT = { min: 400, max: 1_000 }

/** Clients, each of which opens a new connection per request, and waits so many milliseconds. */
const CLIENTS = 6
const REST = 15

/** Requests in flight when all are stopped. */
const HALVES = 8
const SIGN_INS = 8

/** Sends requests during `work`; a request without a response is repeated once, and then must have one. */
const underLoad = async (
  url: string,
  call: Call,
  journal: Journal,
  work: () => Promise<void>,
): Promise<number> => {
  let running = true
  let repeated = 0
  const ask = async () => {
    const response = await send(url, call, false)
    journal.response('workers', call, response)
    if (response.status !== 200) journal.failure('workers', call, `${response.status} ${response.text}`)
  }
  const client = async (): Promise<void> => {
    while (running) {
      await ask()
        .catch(() => {
          repeated += 1
          return ask()
        })
        .catch(error => journal.failure('workers', call, `no response twice: ${asLost(error).message}`))
      await sleep(REST)
    }
  }
  const load = Array.from({ length: CLIENTS }, client)
  await work()
  running = false
  await Promise.all(load)
  return repeated
}

/** Kills one worker, then stops all with requests in flight. */
const killAndStop = async ({ context, random, env }: Part, report: Report): Promise<void> => {
  const journal = new Journal()
  const workers = await startWorkers(context, env)
  const { url } = workers.server
  const both = await workers.untilTwo(START_LIMIT)
  report.expect(both !== null, 'there are not two workers that respond')
  const email = 'ada@example.com'
  const signedUp = JSON.parse((await send(url, calls.signUp(email, PASSWORD), false)).text)

  const replaced = await killOne(
    workers,
    random.pick(both?.pids ?? []),
    journal,
    calls.account(signedUp.accessToken),
  )
  report.figure(
    'responses · repeated requests while a worker was killed',
    `${journal.responses} · ${replaced.repeated}`,
  )
  report.figure('two workers again after', milliseconds(replaced.after))
  report.expect(replaced.after <= REPLACE_LIMIT, 'the killed worker was not replaced in time')

  const halves = await Promise.all(
    Array.from({ length: HALVES }, (_, index) => halfSignUp(url, `half-${index}@example.com`, PASSWORD)),
  )
  const signIns = Array.from({ length: SIGN_INS }, () =>
    send(url, calls.signIn(email, PASSWORD), false).then(
      ({ status }) => status,
      () => 0,
    ),
  )
  await Promise.race(signIns)
  const stopped = workers.server.stop('SIGTERM')
  await sleep(500)
  const statuses = await Promise.all([...signIns, ...halves.map(half => half.finish())])
  const wrong = statuses.filter(status => status !== 200 && status !== 201)
  report.figure('in flight at SIGTERM · without a response', `${statuses.length} · ${wrong.length}`)
  report.expect(wrong.length === 0, `in flight at SIGTERM, statuses ${statuses}`)
  report.expect((await stopped) === 0, `the first process ended with ${await stopped} after SIGTERM`)
  const left = await survivors(workers.pids(), 0)
  report.expect(left.length === 0, `left after the first process had ended: ${left}`)
  report.failures('wrong responses', journal.failures)
}

const killOne = async (workers: Workers, victim: number | undefined, journal: Journal, call: Call) => {
  let after = Number.POSITIVE_INFINITY
  const repeated = await underLoad(workers.server.url, call, journal, async () => {
    await sleep(300)
    if (victim !== undefined) process.kill(victim, 'SIGKILL')
    const again = await workers.untilTwo(REPLACE_LIMIT * 2, victim)
    after = again?.after ?? after
  })
  return { after, repeated }
}

/** Stopped while a killed worker is being replaced: the new one stops too. */
const stopAmidReplacement = async ({ context, random, env }: Part, report: Report): Promise<void> => {
  const workers = await startWorkers(context, env)
  const both = await workers.untilTwo(START_LIMIT)
  process.kill(random.pick(both?.pids ?? []) ?? Number.NaN, 'SIGKILL')
  await sleep(random.integer(REPLACEMENT.min, REPLACEMENT.max))
  const code = await workers.server.stop('SIGTERM')
  report.expect(code === 0, `the first process ended with ${code} after SIGTERM amid a replacement`)
  const left = await survivors(workers.pids(), 0)
  report.expect(left.length === 0, `left after SIGTERM amid a replacement: ${left}`)
}

/** The first process is killed: its workers must not keep the port. */
const killFirst = async ({ context, env }: Part, report: Report): Promise<void> => {
  const workers = await startWorkers(context, env)
  await workers.untilTwo(START_LIMIT)
  const pids = workers.pids()
  await workers.server.stop('SIGKILL')
  const begin = performance.now()
  const left = await survivors(pids, END_LIMIT)
  report.figure('workers gone after kill -9 of the first process', milliseconds(performance.now() - begin))
  report.expect(left.length === 0, `left after the first process was killed: ${left}`)
  for (const pid of left) process.kill(pid, 'SIGKILL')
}

export const runWorkers = async (part: Part): Promise<Report> => {
  const report = new Report('WORKERS=2')
  await killAndStop(part, report)
  await stopAmidReplacement(part, report)
  await killFirst(part, report)
  await reject(part, report)
  return report
}
