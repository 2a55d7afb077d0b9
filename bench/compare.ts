/** Measures two servers in turn, round after round, under the same load. */
import type { LoadGenerator } from './load/load.ts'
import { sendAll } from './load/send-all.ts'
import type { Server } from './processes.ts'
import type { Requests } from './requests.ts'
import { assertSameBytes } from './same-bytes.ts'
import type { Bench, Finding } from './scenario.ts'
import { type Spread, spread } from './statistics.ts'

/** One side in one round. */
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
  /** The processors that its load is made on, if it matters. */
  readonly cores?: readonly number[]
}

export interface Comparison {
  /** Of the first side, of the second. */
  readonly sides: readonly [readonly Sample[], readonly Sample[]]
  /** First ÷ second, of each round. */
  readonly throughputRatio: Spread
  /** Second ÷ first, of each round; 1 is as cheap. */
  readonly cpuRatio: Spread
}

/** Seconds of load before the first round, after which the code is compiled. */
const WARM_UP = 3

/** @throws {Error} when a request fails: a figure that counts refusals is worth nothing. */
export const sample = async (
  generator: LoadGenerator,
  { name, server, requests, cores }: Side,
  seconds: number,
): Promise<Sample> => {
  const before = await server.ask('cpu')
  const load = await generator.run({ url: server.url, requests, seconds, ...(cores && { cores }) })
  const cpu = (await server.ask('cpu')) - before
  if (load.errors > 0) throw new Error(`${name}: ${load.errors} of ${load.requests} requests failed`)
  const { p50, p99 } = load
  return { requestsPerSecond: load.requests / load.seconds, p50, p99, cpuPerRequest: cpu / load.requests }
}

export const compare = async (
  { generator, rounds, seconds }: Bench,
  first: Side,
  second: Side,
): Promise<Comparison> => {
  for (const side of [first, second]) {
    // Fills the caches: no round has tokens to verify but those that were forgotten.
    await sendAll(side.server.url, side.requests)
    await sample(generator, side, WARM_UP)
  }
  const ofFirst: Sample[] = []
  const ofSecond: Sample[] = []
  for (let round = 0; round < rounds; round += 1) {
    const turns = [
      async () => ofFirst.push(await sample(generator, first, seconds)),
      async () => ofSecond.push(await sample(generator, second, seconds)),
    ]
    // Who goes first changes every round: a machine that slows down steadily favours nobody.
    for (const turn of round % 2 === 0 ? turns : turns.reverse()) await turn()
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

/** What one side's rounds gave. */
export const findingsOf = (name: string, samples: readonly Sample[]): Finding[] =>
  FIGURES.map(([what, figure, unit]) => ({
    what: `${name}: ${what}`,
    value: spread(samples.map(sample => sample[figure])),
    unit,
  }))

export interface Versus {
  /** The service, and the yardstick that sends the same bytes. */
  readonly service: Server
  readonly yardstick: Server
  readonly yardstickName: string
  readonly requests: Requests
  /** What both ratios should be; a comparison without it is there to be read. */
  readonly atLeast?: number
}

/** The service beside a yardstick, with the target for both ratios, if it has one. */
export const versus = async (
  bench: Bench,
  { service, yardstick, yardstickName, requests, atLeast }: Versus,
): Promise<readonly Finding[]> => {
  await assertSameBytes(service, yardstick, requests)
  const { sides, throughputRatio, cpuRatio } = await compare(
    bench,
    { name: 'service', server: service, requests },
    { name: yardstickName, server: yardstick, requests },
  )
  const target = atLeast === undefined ? {} : { target: { atLeast } }
  return [
    { what: `CPU, ${yardstickName} ÷ service`, value: cpuRatio, unit: '', ...target },
    { what: `requests/s, service ÷ ${yardstickName}`, value: throughputRatio, unit: '', ...target },
    ...findingsOf('service', sides[0]),
    ...findingsOf(yardstickName, sides[1]),
  ]
}
