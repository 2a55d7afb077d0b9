import { Connection } from '../load/connection.ts'
import { runShortConnections } from '../load/short-connections.ts'
import { runSockets } from '../load/sockets.ts'
import { type Server, startServer, startService, withServers } from '../processes.ts'
import { get, rawRequest, requestAt } from '../requests.ts'
import type { Bench, Finding, Scenario } from '../scenario.ts'
import { single } from '../scenario.ts'
import { type Spread, spread } from '../statistics.ts'

const REQUEST = rawRequest(requestAt(get('/health'), 0))

/** Connections at the same time, of those that end after a few requests. */
const AT_ONCE = 50

const MANY = 10_000

/** Connections that are opened at the same time, fewer than a server's backlog. */
const BATCH = 250

/** Microseconds of CPU of the server for each response. */
const cpuOf = async (server: Server, load: () => Promise<number>): Promise<number> => {
  const before = await server.ask('cpu')
  const responses = await load()
  return ((await server.ask('cpu')) - before) / responses
}

/** The CPU of both servers for each response, in turns. */
const compareCpu = async (
  { rounds }: Bench,
  servers: readonly [Server, Server],
  load: (url: string) => Promise<number>,
): Promise<{ readonly of: readonly [Spread, Spread]; readonly ratio: Spread }> => {
  const [ofService, ofFastify]: [number[], number[]] = [[], []]
  const measure = (side: 0 | 1) => cpuOf(servers[side], () => load(servers[side].url))
  // Until the code is compiled.
  for (const side of [0, 1] as const) await measure(side)
  for (let round = 0; round < rounds; round += 1) {
    const sides = round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)
    for (const side of sides) (side === 0 ? ofService : ofFastify).push(await measure(side))
  }
  const ratios = ofFastify.map((fastify, round) => fastify / (ofService[round] as number))
  return { of: [spread(ofService), spread(ofFastify)], ratio: spread(ratios) }
}

const findingsOf = async (
  bench: Bench,
  servers: readonly [Server, Server],
  what: string,
  load: (url: string) => Promise<number>,
  target: Pick<Finding, 'target'> = {},
): Promise<readonly Finding[]> => {
  const { of, ratio } = await compareCpu(bench, servers, load)
  return [
    { what: `${what}: CPU, bare Fastify ÷ service`, value: ratio, unit: '', ...target },
    { what: `${what}: CPU of the service per request`, value: of[0], unit: 'µs' },
    { what: `${what}: CPU of bare Fastify per request`, value: of[1], unit: 'µs' },
  ]
}

/** Bytes of memory of a server for each idle connection. */
const idleMemory = async (server: Server): Promise<number> => {
  await server.ask('heap')
  const before = await server.ask('rss')
  const open: Connection[] = []
  while (open.length < MANY) {
    const batch = Array.from({ length: BATCH }, () => new Connection(server.url))
    await Promise.all(batch.map(connection => connection.opened()))
    open.push(...batch)
  }
  // The last one is accepted after all others.
  await new Promise<number>(resolve => open.at(-1)?.send(REQUEST, resolve))
  await server.ask('heap')
  const after = await server.ask('rss')
  for (const connection of open) connection.close()
  return (after - before) / MANY
}

/** Each of many connections sends its next request after each response. */
const runMany =
  (seconds: number) =>
  async (url: string): Promise<number> => {
    const { total } = await runSockets({ url, connections: MANY, seconds, next: () => REQUEST })
    return total
  }

export const connections: Scenario = {
  name: 'connections',
  title: 'GET /health on connections of one request and of ten, and on 10,000 idle and active ones',
  async run(bench) {
    const store = await bench.store(10_000)
    const { seconds } = bench
    return withServers(
      [() => startService(store), () => startServer('bench/baselines/health.ts')],
      async (service, fastify) => {
        const servers = [service, fastify] as const
        const short = (requestsPerConnection: number) => (url: string) =>
          runShortConnections({ url, request: REQUEST, requestsPerConnection, atOnce: AT_ONCE, seconds })
        // Before any load, which leaves memory that connections would use.
        const ofService = await idleMemory(service)
        const ofFastify = await idleMemory(fastify)
        const findings = [
          ...(await findingsOf(bench, servers, 'one request', short(1), { target: { atLeast: 0.9 } })),
          ...(await findingsOf(bench, servers, 'ten requests', short(10))),
          ...(await findingsOf(bench, servers, '10,000 active', runMany(seconds))),
        ]
        return [
          ...findings,
          { what: 'memory of an idle connection, service', value: single(ofService / 1_000), unit: 'kB' },
          {
            what: 'memory of an idle connection, bare Fastify',
            value: single(ofFastify / 1_000),
            unit: 'kB',
          },
        ]
      },
    )
  },
}
