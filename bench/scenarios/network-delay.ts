import pg from 'pg'
import { startDelayingProxy } from '../delaying-proxy.ts'
import { runExpecting } from '../load/sockets.ts'
import { type Server, startServer, withServers } from '../processes.ts'
import { bearer, inRotation, rawRequest, readsOf, SIGN_IN, signUp, signUpOne } from '../requests.ts'
import { finding, findings, type Scenario } from '../scenario.ts'
import { median, quantile } from '../statistics.ts'
import { createStore } from '../stores.ts'

/** More than twice the capacity of the cache, so that each request in rotation misses it. */
const USERS = 250_000

/** Users, all of whom the cache holds. */
const CACHED = 1_000

/** Milliseconds by which the network delays a round trip. */
const DELAY = 1

/** Many connections show the cost, and one the latency. */
const CONNECTIONS = 64

const ROUND_TRIPS = 500

/** The median time of a small statement in milliseconds. */
const roundTrip = async (url: string): Promise<number> => {
  const client = new pg.Client({ connectionString: url })
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

interface Operation {
  readonly status: number
  /** The bytes of the next request. */
  readonly next: () => string
}

const operationsOf = (tokens: readonly string[]): Readonly<Record<string, Operation>> => ({
  'cached tokens': { status: 200, next: inRotation(readsOf(tokens.slice(0, CACHED))) },
  'cache misses': { status: 200, next: inRotation(readsOf(tokens)) },
  'sign-ins': { status: 200, next: () => SIGN_IN },
  'sign-ups': { status: 201, next: signUp },
  'PUT /account': { status: 200, next: inRotation(tokens.slice(0, CACHED).map(rename)) },
})

/** Requests per second, microseconds of CPU for each, and milliseconds of one connection. */
const measure = async ({ url, ask }: Server, seconds: number, { status, next }: Operation) => {
  const before = await ask('cpu')
  const { latencies, rate } = await runExpecting(status, { url, connections: CONNECTIONS, seconds, next })
  const cpu = ((await ask('cpu')) - before) / latencies.length
  const alone = await runExpecting(status, { url, connections: 1, seconds, next })
  return { rate, cpu, latency: quantile(alone.latencies, 0.5) }
}

type Figures = Awaited<ReturnType<typeof measure>>

/**
 * The service beside PostgreSQL, and a network away from it. Passwords are not hashed. `test/postgres/round-trips.test.ts` counts
 * the round trips of a request.
 */
export const networkDelay: Scenario = {
  name: 'network-delay',
  title: `PostgreSQL near, and behind ${DELAY} ms of network delay: cache misses (250,000 users in rotation), sign-ins, sign-ups and changes, without hashing`,
  async run({ rounds, seconds }) {
    const store = await createStore('postgres', USERS)
    const near = store.environment.DATABASE_URL ?? ''
    const urls = { near, far: await startDelayingProxy(near, DELAY) }
    const operations = operationsOf(await store.tokens(USERS))
    const starts = Object.values(urls).map(
      url => () => startServer('bench/constant-hash.ts', { ...store.environment, DATABASE_URL: url }),
    )
    return withServers(starts, async (...servers) => {
      const sides = Object.keys(urls).map((side, index) => ({ side, server: servers[index] as Server }))
      await signUpOne(servers[0]?.url ?? '')
      /** Each operation on each side, the sides directly after each other. */
      const takeTurn = async (sidesInOrder: typeof sides, seconds: number) => {
        const figures: Record<string, Figures> = {}
        for (const [name, operation] of Object.entries(operations))
          for (const { side, server } of sidesInOrder)
            figures[`${name}, ${side}`] = await measure(server, seconds, operation)
        return figures
      }
      // The first turn warms up.
      await takeTurn(sides, 1)
      const samples: Record<string, Figures>[] = []
      while (samples.length < rounds)
        samples.push(await takeTurn(samples.length % 2 === 0 ? sides : sides.toReversed(), seconds))
      const of = (name: string, figure: keyof Figures) => (sample: Record<string, Figures>) =>
        sample[name]?.[figure] ?? Number.NaN
      return [
        finding('round trip, near', await roundTrip(urls.near), 'ms'),
        finding('round trip, far', await roundTrip(urls.far), 'ms'),
        ...findings(
          samples,
          Object.keys(urls).map(side => [
            `CPU, cache miss ÷ cached token, ${side}`,
            sample =>
              of(`cache misses, ${side}`, 'cpu')(sample) / of(`cached tokens, ${side}`, 'cpu')(sample),
            '×',
          ]),
        ),
        ...Object.keys(samples[0] ?? {}).flatMap(name =>
          findings(samples, [
            [`${name}: requests/s`, of(name, 'rate'), '/s'],
            [`${name}: CPU per request`, of(name, 'cpu'), 'µs'],
            [`${name}: p50 alone`, of(name, 'latency'), 'ms'],
          ]),
        ),
      ]
    })
  },
}
