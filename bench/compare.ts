/** Measures two servers alternately under the same load, in several rounds. */
import { sendAll } from './load/sockets.ts'
import type { Server } from './processes.ts'
import { type Requests, requestAt } from './requests.ts'
import { type Bench, type Finding, finding, findings, type Target } from './scenario.ts'
import { median } from './statistics.ts'

/** The figures of one side in one round. */
interface Sample {
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

/** Targets of the two ratios. */
export interface Targets {
  readonly cpu?: Target
  readonly rate?: Target
}

/** Seconds of load before the first round, until the code is compiled. */
const WARM_UP = 3

/**
 * Seconds of load on one side before the other one's turn. Other users of the machine disturb it for seconds at a time: with turns of
 * five seconds, the same two processes differed by 1.54 in one run and by 0.79 in another.
 */
const TURN = 1

const figuresOf = (name: string, samples: readonly Sample[]): readonly Finding[] =>
  findings(samples, [
    [`${name}: requests/s`, ({ requestsPerSecond }) => requestsPerSecond, '/s'],
    [`${name}: p50`, ({ p50 }) => p50, 'ms'],
    [`${name}: p99`, ({ p99 }) => p99, 'ms'],
    [`${name}: CPU per request`, ({ cpuPerRequest }) => cpuPerRequest, 'µs'],
  ])

/** @throws {Error} if a request fails, because rejected requests would distort the figures. */
const sample = async (
  { generator }: Bench,
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

/** The medians of the turns of a round. */
const medianOf = (turns: readonly Sample[]): Sample => {
  const of = (figure: keyof Sample): number => median(turns.map(turn => turn[figure]))
  return {
    requestsPerSecond: of('requestsPerSecond'),
    p50: of('p50'),
    p99: of('p99'),
    cpuPerRequest: of('cpuPerRequest'),
  }
}

/** @returns the ratios of both sides, and the figures of each over all rounds. */
export const compare = async (
  bench: Bench,
  first: Side,
  second: Side,
  targets: Targets = {},
): Promise<readonly Finding[]> => {
  for (const side of [first, second]) {
    // Fills the caches, so that rounds verify only evicted tokens.
    await sendAll(side.server.url, side.requests)
    await sample(bench, side, WARM_UP)
  }
  const [ofFirst, ofSecond]: [Sample[], Sample[]] = [[], []]
  for (let round = 0; round < bench.rounds; round += 1) {
    const [turnsOfFirst, turnsOfSecond]: [Sample[], Sample[]] = [[], []]
    for (let turn = 0; turn < bench.seconds; turn += TURN) {
      const turns = [
        async () => turnsOfFirst.push(await sample(bench, first, TURN)),
        async () => turnsOfSecond.push(await sample(bench, second, TURN)),
      ]
      // Alternates the order, so that a steady slowdown of the machine affects both sides.
      for (const run of (round + turn) % 2 === 0 ? turns : turns.reverse()) await run()
    }
    ofFirst.push(medianOf(turnsOfFirst))
    ofSecond.push(medianOf(turnsOfSecond))
  }
  const ratio = (figure: keyof Sample): readonly number[] =>
    ofFirst.map((one, round) => one[figure] / (ofSecond[round] as Sample)[figure])
  const cpu = ratio('cpuPerRequest').map(share => 1 / share)
  const rate = ratio('requestsPerSecond')
  return [
    finding(`CPU, ${second.name} ÷ ${first.name}`, cpu, '', targets.cpu),
    finding(`requests/s, ${first.name} ÷ ${second.name}`, rate, '', targets.rate),
    ...figuresOf(first.name, ofFirst),
    ...figuresOf(second.name, ofSecond),
  ]
}

const RANDOM = new Set(['date', 'x-request-id'])

const shapeOf = async (server: Server, requests: Requests): Promise<string> => {
  const { method, path, headers, body: sent } = requestAt(requests, 0)
  const response = await fetch(server.url + path, {
    method,
    headers: { ...headers, ...(sent !== undefined && { 'content-type': 'application/json' }) },
    ...(sent !== undefined && { body: sent }),
  })
  const body = await response.text()
  const fields = [...response.headers].map(([name, value]) =>
    RANDOM.has(name) ? `${name}: ${value.length} characters` : `${name}: ${value}`,
  )
  return [`status ${response.status}`, ...fields, `${Buffer.byteLength(body)} bytes`].join('\n')
}

/**
 * Checks that a baseline sends the same header fields and the same number of bytes as the service.
 * @throws {Error} with both responses.
 */
export const assertSameBytes = async (
  service: Server,
  baseline: Server,
  requests: Requests,
): Promise<void> => {
  const [one, other] = [await shapeOf(service, requests), await shapeOf(baseline, requests)]
  if (one !== other) throw new Error(`The responses differ. The service:\n${one}\n\nThe baseline:\n${other}`)
}
