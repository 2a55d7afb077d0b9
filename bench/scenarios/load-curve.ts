import { OpenLoop, type OpenLoopResult, type Target } from '../load/open-loop.ts'
import { sendAll } from '../load/send-all.ts'
import { betterAuthPeer } from '../peers/start.ts'
import type { Curve, Plot } from '../plot/load-curves.ts'
import { writePlots } from '../plot/write-plots.ts'
import { startService, withServers } from '../processes.ts'
import { progress } from '../progress.ts'
import { machine } from '../report.ts'
import { bearer, get, type Requests } from '../requests.ts'
import type { Bench, Finding, Scenario } from '../scenario.ts'
import { median, spread } from '../statistics.ts'

const USERS = 1_000

/** Those who sign in. */
const ACCOUNTS = 20
const PASSWORD = 'a rather long pass phrase 7'

/** More would take long: each round has about 40 steps. */
const MAX_ROUNDS = 3

/** Seconds of load that find out what a service can do. */
const ESTIMATE = 3

interface Loads {
  /** The connections that find it out: so few that nothing is rejected. */
  readonly connections: number
  /** Requests per second, as far as they are below the first of the parts. */
  readonly low: readonly number[]
  /** Parts of what the service can do. */
  readonly parts: readonly number[]
}

const READS: Loads = {
  connections: 64,
  low: [100, 300, 1_000, 3_000, 10_000],
  parts: [0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.25],
}

/** Up to an overload that fills the queue of hashes. */
const SIGN_INS: Loads = { connections: 8, low: [10, 30], parts: [0.5, 0.7, 0.85, 1, 1.2, 1.6, 2.5, 4] }

const roundsOf = ({ rounds }: Bench): number => Math.min(rounds, MAX_ROUNDS)

/** Milliseconds of a stall of the generator that are worth a word: the latencies contain them. */
const STALL = 20

/** Two significant digits. */
const rounded = (rate: number): number => Number(rate.toPrecision(2))

const ratesOf = ({ low, parts }: Loads, capacity: number): readonly number[] => {
  const high = parts.map(part => rounded(capacity * part))
  return [...low.filter(rate => rate < (high[0] ?? 0) * 0.8), ...high]
}

/** The results of each rate, by rate. */
type Measured = ReadonlyMap<number, readonly OpenLoopResult[]>

interface Side {
  readonly name: string
  readonly load: OpenLoop
}

const stepOf = async ({ name, load }: Side, rate: number, seconds: number): Promise<OpenLoopResult> => {
  const result = await load.offer(rate, seconds)
  const { offered, succeeded, rejected, p99, stall } = result
  const rates = Object.entries({ offered, succeeded, rejected }).map(
    ([what, rate]) => `${what} ${rate.toFixed(0)}`,
  )
  const note = stall > STALL ? `; the generator stalled for ${Math.round(stall)} ms` : ''
  progress(`  ${name}, per second: ${rates.join(', ')}; p99 ${p99.toFixed(1)} ms${note}`)
  return result
}

const measure = async (bench: Bench, sides: readonly Side[], loads: Loads): Promise<readonly Measured[]> => {
  const { connections } = loads
  const measured: Map<number, OpenLoopResult[]>[] = []
  for (const { load } of sides) {
    // The first load compiles the code.
    await load.saturate(connections, ESTIMATE)
    const capacity = await load.saturate(connections, ESTIMATE)
    measured.push(new Map(ratesOf(loads, capacity).map(rate => [rate, []])))
  }
  const rounds = roundsOf(bench)
  for (let round = 0; round < rounds; round += 1) {
    progress(`  round ${round + 1} of ${rounds}`)
    for (const [index, side] of sides.entries())
      for (const [rate, results] of measured[index] ?? [])
        results.push(await stepOf(side, rate, bench.seconds))
  }
  return measured
}

const curveOf = (service: string, measured: Measured): Curve => ({
  service,
  steps: [...measured.values()]
    .map(results => ({
      offered: median(results.map(({ offered }) => offered)),
      succeeded: spread(results.map(({ succeeded }) => succeeded)),
      rejected: median(results.map(({ rejected }) => rejected)),
      p99: spread(results.map(({ p99 }) => p99)),
    }))
    // The generator may have offered less than it should.
    .toSorted((one, other) => one.offered - other.offered),
})

const findingsOf = (what: string, measured: Measured, { parts }: Loads): readonly Finding[] => {
  const steps = [...measured.values()]
  const rounds = steps[0]?.map((_, round) => steps.map(results => results[round] as OpenLoopResult)) ?? []
  const half = steps.at(-parts.length) ?? []
  const rejected = steps.at(-1)?.flatMap(({ rejectedP99 }) => rejectedP99 ?? []) ?? []
  return [
    {
      what: `${what}: most successful responses`,
      value: spread(rounds.map(results => Math.max(...results.map(({ succeeded }) => succeeded)))),
      unit: '/s',
    },
    { what: `${what}: p99 at half of it`, value: spread(half.map(({ p99 }) => p99)), unit: 'ms' },
    ...(rejected.length === 0
      ? []
      : [{ what: `${what}: p99 of rejected requests`, value: spread(rejected), unit: 'ms' }]),
  ]
}

interface Kind {
  readonly name: string
  readonly title: string
  readonly loads: Loads
  readonly targets: Readonly<Record<string, Target>>
}

const run = async (bench: Bench, { name, title, loads, targets }: Kind) => {
  progress(`  ${title}`)
  const sides = Object.entries(targets).map(([name, target]) => ({ name, load: new OpenLoop(target) }))
  const measured = await measure(bench, sides, loads)
  for (const { load } of sides) await load.stop()
  const each = sides.map((side, index) => ({ side, of: measured[index] as Measured }))
  const plot: Plot = { name, title, curves: each.map(({ side, of }) => curveOf(side.name, of)) }
  return { plot, findings: each.flatMap(({ side, of }) => findingsOf(`${title}, ${side.name}`, of, loads)) }
}

const signUps = (path: string, status: number, names: object): Requests => ({
  method: 'POST',
  paths: [path],
  headers: [{}],
  bodies: Array.from({ length: ACCOUNTS }, (_, index) =>
    JSON.stringify({ email: `new${index}@example.com`, password: PASSWORD, ...names }),
  ),
  status,
})

const signIns = (path: string): Requests => signUps(path, 200, {})

export const loadCurve: Scenario = {
  name: 'load-curve',
  title:
    'GET /account and sign-ins at a constant rate of arrivals, from low load to overload, beside better-auth; ' +
    'latencies run from the time a request was due',
  run: async bench => {
    const peer = await betterAuthPeer(USERS)
    const store = await bench.store(USERS)
    const tokens = await store.tokens(USERS)
    return withServers([() => startService(store), peer.start], async (service, other) => {
      const reads = await run(bench, {
        name: 'account',
        title: 'GET /account',
        loads: READS,
        targets: {
          Gatehouse: { url: service.url, requests: get('/account', tokens.map(bearer)) },
          'better-auth': {
            url: other.url,
            requests: get('/api/auth/get-session', peer.tokens().map(bearer)),
          },
        },
      })
      await sendAll(service.url, signUps('/account/sign-up', 201, {}))
      await sendAll(other.url, signUps('/api/auth/sign-up/email', 200, { name: 'New' }))
      const hashing = await run(bench, {
        name: 'sign-in',
        title: 'Sign-in',
        loads: SIGN_INS,
        targets: {
          Gatehouse: { url: service.url, requests: signIns('/account/sign-in') },
          'better-auth': { url: other.url, requests: signIns('/api/auth/sign-in/email') },
        },
      })
      if (bench.plots) {
        const { node, platform, cores } = machine()
        const times = `${roundsOf(bench)} × ${bench.seconds} s at each load`
        writePlots({
          conditions: `${cores} cores, which also generated the load; ${times}; Node ${node}, ${platform}, SQLite`,
          plots: [reads.plot, hashing.plot],
        })
      }
      return [...reads.findings, ...hashing.findings]
    })
  },
}
