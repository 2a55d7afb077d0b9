/** Measures a scenario: the service and its yardstick in turn, round after round, under the same load. */
import type { LoadGenerator } from './load/load.ts'
import { type Server, startService, startYardstick } from './processes.ts'
import { assertSameBytes } from './same-bytes.ts'
import type { Requests, Scenario } from './scenario.ts'
import { type Spread, spread } from './statistics.ts'
import { createWorkspace } from './workspace.ts'

/** One side in one round. */
export interface Sample {
  readonly requestsPerSecond: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  /** Microseconds of the server process, user and system, all threads. */
  readonly cpuPerRequest: number
}

export type SideResult = { readonly [Figure in keyof Sample]: Spread }

export interface ScenarioResult {
  readonly name: string
  readonly title: string
  readonly service: SideResult
  readonly yardstick: SideResult
  /** Service ÷ yardstick, of each round; 1 is as fast. */
  readonly throughputRatio: Spread
  /** Yardstick ÷ service, of each round; 1 is as cheap. */
  readonly cpuRatio: Spread
}

export interface MeasureOptions {
  readonly generator: LoadGenerator
  readonly rounds: number
  /** Seconds of load on each side of each round. */
  readonly seconds: number
}

/** Seconds of load before the first round, after which the code is compiled and the caches are filled. */
const WARM_UP = 3

const summarize = (samples: readonly Sample[]): SideResult => ({
  requestsPerSecond: spread(samples.map(sample => sample.requestsPerSecond)),
  p50: spread(samples.map(sample => sample.p50)),
  p99: spread(samples.map(sample => sample.p99)),
  cpuPerRequest: spread(samples.map(sample => sample.cpuPerRequest)),
})

/** @throws {Error} when a request fails: a figure that counts refusals is worth nothing. */
export const measureScenario = async (
  scenario: Scenario,
  { generator, rounds, seconds }: MeasureOptions,
): Promise<ScenarioResult> => {
  const workspace = createWorkspace()
  const servers: Server[] = []
  const sample = async (server: Server, requests: Requests, seconds: number): Promise<Sample> => {
    const before = await server.cpu()
    const load = await generator.run({ url: server.url, requests, seconds, folder: workspace.folder })
    const cpu = (await server.cpu()) - before
    if (load.errors > 0)
      throw new Error(`${scenario.name}: ${load.errors} of ${load.requests} requests failed`)
    const { p50, p99 } = load
    return {
      requestsPerSecond: load.requests / load.seconds,
      p50,
      p99,
      cpuPerRequest: cpu / load.requests,
    }
  }
  try {
    const { requests, env } = await scenario.prepare(workspace)
    const service = await startService(workspace, env)
    servers.push(service)
    const yardstick = await startYardstick(scenario.yardstick)
    servers.push(yardstick)
    await sample(service, requests, WARM_UP)
    await sample(yardstick, requests, WARM_UP)
    await assertSameBytes(service, yardstick, requests)

    const ofService: Sample[] = []
    const ofYardstick: Sample[] = []
    for (let round = 0; round < rounds; round += 1) {
      const turns = [
        async () => ofService.push(await sample(service, requests, seconds)),
        async () => ofYardstick.push(await sample(yardstick, requests, seconds)),
      ]
      // Who goes first changes every round: a machine that slows down steadily favours nobody.
      for (const turn of round % 2 === 0 ? turns : turns.reverse()) await turn()
    }
    const pairs = ofService.flatMap((one, index) => {
      const other = ofYardstick[index]
      return other === undefined ? [] : [{ one, other }]
    })
    return {
      name: scenario.name,
      title: scenario.title,
      service: summarize(ofService),
      yardstick: summarize(ofYardstick),
      throughputRatio: spread(pairs.map(({ one, other }) => one.requestsPerSecond / other.requestsPerSecond)),
      cpuRatio: spread(pairs.map(({ one, other }) => other.cpuPerRequest / one.cpuPerRequest)),
    }
  } finally {
    for (const server of servers) await server.stop()
    workspace.remove()
  }
}
