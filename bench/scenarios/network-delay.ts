import { once } from 'node:events'
import { join } from 'node:path'
import pg from 'pg'
import { runSockets } from '../load/sockets.ts'
import { type Server, start, startServer, withServers } from '../processes.ts'
import { bearer, rawRequest } from '../requests.ts'
import { type Finding, type Scenario, single } from '../scenario.ts'
import { signInRequest, signUpOne } from '../sign-in.ts'
import { median, quantile, spread } from '../statistics.ts'
import { createStore, type Store } from '../stores.ts'
import { signUp } from './sign-ups.ts'

/** More than twice the capacity of the cache, so that each request in rotation misses it. */
const USERS = 250_000

/** Users, all of whom the cache holds. */
const CACHED = 1_000

/** Milliseconds by which the network delays a round trip. */
const DELAY = 1

/** Many connections show the cost, and one the latency. */
const CONNECTIONS = 64

const PROXY = join(import.meta.dirname, '..', 'network', 'delaying-proxy.ts')

/** The same store, reached through a proxy. */
const delayed = async ({ environment, ...store }: Store): Promise<Store> => {
  const url = new URL(environment.DATABASE_URL ?? '')
  const proxy = start(process.execPath, [PROXY, url.port, String(DELAY)], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const [port] = (await once(proxy, 'message')) as [number]
  proxy.unref()
  proxy.channel?.unref()
  url.port = String(port)
  return { ...store, environment: { ...environment, DATABASE_URL: url.href } }
}

const ROUND_TRIPS = 500

/** The median time of a small statement in milliseconds. */
const roundTrip = async ({ environment }: Store): Promise<number> => {
  const client = new pg.Client({ connectionString: environment.DATABASE_URL })
  await client.connect()
  const times: number[] = []
  while (times.length < ROUND_TRIPS) {
    const begin = performance.now()
    await client.query({ name: 'one', text: 'SELECT 1' })
    times.push(performance.now() - begin)
  }
  await client.end()
  return median(times)
}

const rename = (token: string, index: number): string =>
  rawRequest({
    method: 'PUT',
    path: '/account',
    headers: bearer(token),
    body: JSON.stringify({ firstName: `name ${index}` }),
  })

interface Figures {
  readonly rate: number
  /** Microseconds per request. */
  readonly cpu: number
  /** Milliseconds, of one connection. */
  readonly latency: number
}

const FIGURES = [
  ['rate', 'requests/s', '/s'],
  ['cpu', 'CPU per request', 'µs'],
  ['latency', 'p50 alone', 'ms'],
] as const

interface Operation {
  readonly name: string
  readonly next: () => string
}

const inRotation = (requests: readonly string[]): (() => string) => {
  let sent = 0
  return () => {
    sent += 1
    return requests[sent % requests.length] as string
  }
}

const operationsOf = (tokens: readonly string[]): readonly Operation[] => {
  const get = (token: string): string =>
    rawRequest({ method: 'GET', path: '/account', headers: bearer(token) })
  return [
    { name: 'cached tokens', next: inRotation(tokens.slice(0, CACHED).map(get)) },
    { name: 'cache misses', next: inRotation(tokens.map(get)) },
    { name: 'sign-ins', next: signInRequest },
    { name: 'sign-ups', next: signUp },
    { name: 'PUT /account', next: inRotation(tokens.slice(0, CACHED).map(rename)) },
  ]
}

const run = async (url: string, connections: number, seconds: number, { name, next }: Operation) => {
  const { latencies, total, seconds: took } = await runSockets({ url, connections, seconds, next })
  const statuses = [...latencies.keys()]
  if (statuses.some(status => status >= 300)) throw new Error(`${name}: responses had status ${statuses}`)
  return { total, rate: total / took, p50: quantile([...latencies.values()].flat(), 0.5) }
}

const measure = async (server: Server, seconds: number, operation: Operation): Promise<Figures> => {
  const before = await server.ask('cpu')
  const { total, rate } = await run(server.url, CONNECTIONS, seconds, operation)
  const cpu = ((await server.ask('cpu')) - before) / total
  const { p50 } = await run(server.url, 1, seconds, operation)
  return { rate, cpu, latency: p50 }
}

interface Sample extends Figures {
  readonly side: string
  readonly name: string
}

/** Each operation on each side, the sides directly after each other. */
const takeTurn = async (
  sides: readonly { readonly side: string; readonly server: Server }[],
  operations: readonly Operation[],
  seconds: number,
): Promise<Sample[]> => {
  const samples: Sample[] = []
  for (const operation of operations) {
    for (const { side, server } of sides)
      samples.push({ side, name: operation.name, ...(await measure(server, seconds, operation)) })
  }
  return samples
}

const findingsOf = (samples: readonly Sample[], name: string, side: string): Finding[] => {
  const found = samples.filter(sample => sample.name === name && sample.side === side)
  return FIGURES.map(([figure, what, unit]) => ({
    what: `${name}, ${side}: ${what}`,
    value: spread(found.map(sample => sample[figure])),
    unit,
  }))
}

/** The CPU of a miss by that of a hit in the same round and on the same side. */
const missByHit = (samples: readonly Sample[], side: string): Finding => {
  const [hits, misses] = ['cached tokens', 'cache misses'].map(name =>
    samples.filter(sample => sample.name === name && sample.side === side),
  )
  const ratios = misses?.map(({ cpu }, round) => cpu / (hits?.[round]?.cpu ?? 0)) ?? []
  return { what: `CPU, cache miss ÷ cached token, ${side}`, value: spread(ratios), unit: '×' }
}

/**
 * The service beside PostgreSQL, and a network away from it. Passwords are not hashed. `test/postgres/round-trips.test.ts` counts
 * the round trips of a request.
 */
export const networkDelay: Scenario = {
  name: 'network-delay',
  title: `PostgreSQL near, and behind ${DELAY} ms of network delay: cache misses (250,000 users in rotation), sign-ins, sign-ups and changes, without hashing`,
  run: async ({ rounds, seconds }) => {
    const near = await createStore('postgres', USERS)
    const stores = { near, far: await delayed(near) }
    const operations = operationsOf(await near.tokens(USERS))
    const starts = Object.values(stores).map(
      ({ environment }) =>
        () =>
          startServer('bench/variants/constant-hash.ts', environment),
    )
    return withServers(starts, async (...servers) => {
      const sides = Object.keys(stores).map((side, index) => ({ side, server: servers[index] as Server }))
      await signUpOne(servers[0] as Server)
      // The first turn warms up.
      await takeTurn(sides, operations, 1)
      const samples: Sample[] = []
      for (let round = 0; round < rounds; round += 1)
        samples.push(...(await takeTurn(round % 2 === 0 ? sides : sides.toReversed(), operations, seconds)))
      return [
        { what: 'round trip, near', value: single(await roundTrip(stores.near)), unit: 'ms' },
        { what: 'round trip, far', value: single(await roundTrip(stores.far)), unit: 'ms' },
        missByHit(samples, 'near'),
        missByHit(samples, 'far'),
        ...operations.flatMap(({ name }) => sides.flatMap(({ side }) => findingsOf(samples, name, side))),
      ]
    })
  },
}
