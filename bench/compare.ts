/** Measures two servers alternately under the same load, in several rounds. */
import { setTimeout as delay } from 'node:timers/promises'
import type { LoadGenerator } from './load/load.ts'
import { sendAll } from './load/send-all.ts'
import type { Server } from './processes.ts'
import type { Requests } from './requests.ts'
import { assertSameBytes } from './same-bytes.ts'
import type { Bench, Finding } from './scenario.ts'
import { median, type Spread, spread } from './statistics.ts'

/** The figures of one side in one round. */
export interface Sample {
  readonly requestsPerSecond: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  /** Microseconds of the server process and its workers, user and system, all threads. */
  readonly cpuPerRequest: number
}

export interface Side {
  readonly name: string
  readonly server: Server
  readonly requests: Requests
  /** The processors of its load generator; by default any. */
  readonly cores?: readonly number[]
}

export interface Comparison {
  /** The samples of the first side, and of the second. */
  readonly sides: readonly [readonly Sample[], readonly Sample[]]
  /** First ÷ second, per round. */
  readonly throughputRatio: Spread
  /** Second ÷ first, per round; 1 means equal cost. */
  readonly cpuRatio: Spread
}

/** Seconds of load before the first round, until the code is compiled. */
const WARM_UP = 3

/**
 * Seconds of load on one side before the other one's turn. Other users of the machine disturb it for seconds at a time: with turns of
 * five seconds, the same two processes differed by 1.54 in one run and by 0.79 in another.
 */
const TURN = 1

export interface CompareOptions {
  /** Seconds without load after each turn that count towards its CPU, for work that a request causes later. */
  readonly settle?: number
}

/** @throws {Error} if a request fails, because rejected requests would distort the figures. */
export const sample = async (
  generator: LoadGenerator,
  { name, server, requests, cores }: Side,
  seconds: number,
  settle = 0,
): Promise<Sample> => {
  const before = await server.ask('cpu')
  const load = await generator.run({ url: server.url, requests, seconds, ...(cores && { cores }) })
  if (settle > 0) await delay(settle * 1_000)
  const cpu = (await server.ask('cpu')) - before
  if (load.errors > 0) throw new Error(`${name}: ${load.errors} of ${load.requests} requests failed`)
  const { p50, p99 } = load
  return { requestsPerSecond: load.requests / load.seconds, p50, p99, cpuPerRequest: cpu / load.requests }
}

/** The medians of the turns of a round. */
const medianOf = (samples: readonly Sample[]): Sample => {
  const of = (figure: keyof Sample): number => median(samples.map(sample => sample[figure]))
  return {
    requestsPerSecond: of('requestsPerSecond'),
    p50: of('p50'),
    p99: of('p99'),
    cpuPerRequest: of('cpuPerRequest'),
  }
}

export const compare = async (
  { generator, rounds, seconds }: Bench,
  first: Side,
  second: Side,
  { settle }: CompareOptions = {},
): Promise<Comparison> => {
  for (const side of [first, second]) {
    // Fills the caches, so that rounds verify only evicted tokens.
    await sendAll(side.server.url, side.requests)
    await sample(generator, side, WARM_UP)
  }
  const ofFirst: Sample[] = []
  const ofSecond: Sample[] = []
  for (let round = 0; round < rounds; round += 1) {
    const [turnsOfFirst, turnsOfSecond]: [Sample[], Sample[]] = [[], []]
    for (let turn = 0; turn < seconds; turn += TURN) {
      const turns = [
        async () => turnsOfFirst.push(await sample(generator, first, TURN, settle)),
        async () => turnsOfSecond.push(await sample(generator, second, TURN, settle)),
      ]
      // Alternates the order, so that a steady slowdown of the machine affects both sides.
      for (const run of (round + turn) % 2 === 0 ? turns : turns.reverse()) await run()
    }
    ofFirst.push(medianOf(turnsOfFirst))
    ofSecond.push(medianOf(turnsOfSecond))
  }
  const ratio = (pick: (first: Sample, second: Sample) => number): Spread =>
    spread(ofFirst.map((one, index) => pick(one, ofSecond[index] as Sample)))
  return {
    sides: [ofFirst, ofSecond],
    throughputRatio: ratio((one, other) => one.requestsPerSecond / other.requestsPerSecond),
    cpuRatio: ratio((one, other) => other.cpuPerRequest / one.cpuPerRequest),
  }
}

const FIGURES = [
  ['requests/s', 'requestsPerSecond', '/s'],
  ['p50', 'p50', 'ms'],
  ['p99', 'p99', 'ms'],
  ['CPU per request', 'cpuPerRequest', 'µs'],
] as const

/** The figures of one side over all rounds. */
export const findingsOf = (name: string, samples: readonly Sample[]): Finding[] =>
  FIGURES.map(([what, figure, unit]) => ({
    what: `${name}: ${what}`,
    value: spread(samples.map(sample => sample[figure])),
    unit,
  }))

export interface Versus {
  /** The service, and a baseline that sends the same bytes. */
  readonly service: Server
  readonly baseline: Server
  readonly baselineName: string
  readonly requests: Requests
  /** The target of both ratios; without it they are informative. */
  readonly atLeast?: number
}

/** Compares the service with a baseline. */
export const versus = async (
  bench: Bench,
  { service, baseline, baselineName, requests, atLeast }: Versus,
): Promise<readonly Finding[]> => {
  await assertSameBytes(service, baseline, requests)
  const { sides, throughputRatio, cpuRatio } = await compare(
    bench,
    { name: 'service', server: service, requests },
    { name: baselineName, server: baseline, requests },
  )
  const target = atLeast === undefined ? {} : { target: { atLeast } }
  return [
    { what: `CPU, ${baselineName} ÷ service`, value: cpuRatio, unit: '', ...target },
    { what: `requests/s, service ÷ ${baselineName}`, value: throughputRatio, unit: '', ...target },
    ...findingsOf('service', sides[0]),
    ...findingsOf(baselineName, sides[1]),
  ]
}
