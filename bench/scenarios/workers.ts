import { freePort } from '../../scripts/postgres-server.ts'
import { compare, type Side } from '../compare.ts'
import { sendAll } from '../load/sockets.ts'
import { coresToPin, withServers } from '../processes.ts'
import { bearer, get } from '../requests.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { createStore, startService } from '../stores.ts'

const USERS = 10_000
const WORKERS = 2

/** Repetitions of the warm-up: each connection belongs to one worker, so a repetition reaches only half of the users in each. */
const TIMES = 6

/** Pipelined requests per connection. */
const AT_ONCE = 25

/** Prepares a service with as many workers as processors, on a store of its own: two services would empty each other's caches. */
const setUp = async ({ engine }: Bench, name: string, cores: readonly number[]) => {
  const store = await createStore(engine, USERS)
  const requests = { ...get('/account', (await store.tokens(USERS)).map(bearer)), atOnce: AT_ONCE }
  return {
    start: async () => {
      // On a chosen port: with port 0, Node would balance the connections of processes.
      const env = { WORKERS: String(cores.length), PORT: String(await freePort()) }
      return startService(store, env, { processes: cores.length, cores })
    },
    side: { name, requests, cores } satisfies Omit<Side, 'server'>,
  }
}

/**
 * Compares one processor with a worker and a wrk thread to two processors with two of each (`taskset`). On a machine with two
 * processors, two workers would leave none to the load generator, but one worker would leave one, and the throughput would depend
 * on the generator. This way both sides include its cost. With pipelining, that is a quarter of the service's cost.
 *
 * Two effects count against the workers: PostgreSQL, which is not pinned, finds no idle processor; and the kernel assigns half of a
 * thread's connections to the worker on the other processor. The latter matters most: on a machine where this scenario gives 1.5,
 * two separate services reached 1.93 times the throughput of one with a thread on the same processor each, and 1.37 times with
 * the threads swapped.
 */
export const workers: Scenario = {
  name: 'workers',
  title: `GET /account, 10,000 users in rotation, ${AT_ONCE} requests at once on a connection; each processor carries a worker and its share of the load`,
  skipReason: ({ generator }) =>
    generator.name === 'wrk' && coresToPin().length >= WORKERS
      ? undefined
      : 'it needs wrk, taskset (Linux) and two processors',
  async run(bench) {
    const cores = coresToPin().slice(0, WORKERS)
    const two = await setUp(bench, '2 workers', cores)
    const one = await setUp(bench, '1 worker', cores.slice(0, 1))
    return withServers([two.start, one.start], async (both, alone) => {
      for (let time = 0; time < TIMES; time += 1) await sendAll(both.url, two.side.requests)
      const sides = [
        { ...two.side, server: both },
        { ...one.side, server: alone },
      ] as const
      const findings = await compare(bench, ...sides, { rate: { atLeast: 1.7 } })
      // Latencies mean nothing for pipelined requests.
      return findings.filter(({ unit }) => unit !== 'ms')
    })
  },
}
