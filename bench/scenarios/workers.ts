import { freePort } from '../../scripts/postgres-server.ts'
import { compare, findingsOf, type Sample } from '../compare.ts'
import { coresToPin } from '../cores.ts'
import { sendAll } from '../load/send-all.ts'
import { type Server, startService, withServers } from '../processes.ts'
import { bearer, get } from '../requests.ts'
import type { Finding, Scenario } from '../scenario.ts'
import type { Store } from '../stores.ts'

const USERS = 10_000
const WORKERS = 2

/** How often each request is sent first: a connection is one worker's, so each time half of the users are new to either. */
const TIMES = 6

/** Requests that a connection sends at once; so many go into all. */
const AT_ONCE = 25

/** As many workers as processors, on a port of our own: one that is still to be chosen would be Node's to spread. */
const start = async (store: Store, cores: readonly number[]): Promise<Server> => {
  const env = { WORKERS: String(cores.length), PORT: String(await freePort()) }
  return startService(store, env, { processes: cores.length, cores })
}

/** Without latencies: those of many requests at once mean nothing. */
const rates = (name: string, samples: readonly Sample[]): readonly Finding[] =>
  findingsOf(name, samples).filter(({ unit }) => unit !== 'ms')

/**
 * Two processors that carry two workers have none left for the load, while one worker would leave it one: then the
 * throughput says more of the load than of the workers. So nothing is left in either case (`taskset`): one processor that
 * carries a worker and a thread of wrk, beside two processors that carry two of each. What the load costs is in both, and
 * by sending many requests at once it is a fourth of what they cost the service.
 *
 * What is left counts against the workers: PostgreSQL, which nobody pins, finds no processor free, and the kernel gives half
 * of a thread's connections to the worker on the other processor. That is most of it: on a machine where this scenario gives
 * 1.5, two services, each with a thread on its own processor, answered 1.93 times what one did, and 1.37 times with each
 * other's thread. Requests per CPU second of the service (the first process and all workers) times the number of workers is
 * what these would answer if each had a processor to itself and waited for nothing.
 */
export const workers: Scenario = {
  name: 'workers',
  title: `GET /account on PostgreSQL, 10,000 users in rotation, ${AT_ONCE} requests at once on a connection; each processor carries a worker and its share of the load`,
  run: async bench => {
    const store = await bench.store(USERS, 'postgres')
    const requests = { ...get('/account', (await store.tokens(USERS)).map(bearer)), atOnce: AT_ONCE }
    const two = coresToPin().slice(0, WORKERS)
    const one = two.slice(0, 1)
    return withServers([() => start(store, two), () => start(store, one)], async (both, alone) => {
      for (let time = 0; time < TIMES; time += 1) await sendAll(both.url, requests)
      const { sides, throughputRatio, cpuRatio } = await compare(
        bench,
        { name: '2 workers', server: both, requests, cores: two },
        { name: '1 worker', server: alone, requests, cores: one },
      )
      const { median, min, max } = cpuRatio
      return [
        {
          what: 'requests/s, 2 workers on 2 processors ÷ 1 on 1',
          value: throughputRatio,
          unit: '×',
          target: { atLeast: 1.7 },
        },
        {
          what: 'requests per CPU second × workers, 2 ÷ 1',
          value: { median: median * WORKERS, min: min * WORKERS, max: max * WORKERS },
          unit: '×',
        },
        ...rates('2 workers', sides[0]),
        ...rates('1 worker', sides[1]),
      ]
    })
  },
}
