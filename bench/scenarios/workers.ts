import { freePort } from '../../scripts/postgres-server.ts'
import { compare, findingsOf, type Sample } from '../compare.ts'
import { coresToPin } from '../cores.ts'
import { sendAll } from '../load/send-all.ts'
import { type Server, startService, withServers } from '../processes.ts'
import { bearer, get, type Requests } from '../requests.ts'
import type { Bench, Finding, Scenario } from '../scenario.ts'
import { createStore, type Engine, type Store } from '../stores.ts'

const USERS = 10_000
const WORKERS = 2

/** Repetitions of the warm-up: each connection belongs to one worker, so a repetition reaches only half of the users in each. */
const TIMES = 6

/** Pipelined requests per connection. */
const AT_ONCE = 25

/** What a service is started on, and sent. */
interface Setup {
  readonly store: Store
  readonly cores: readonly number[]
  readonly requests: Requests
}

/** A store of its own: two services on one SQLite file would empty each other's caches. */
const setUp = async (engine: Engine, cores: readonly number[]): Promise<Setup> => {
  const store = await createStore(engine, USERS)
  const requests = { ...get('/account', (await store.tokens(USERS)).map(bearer)), atOnce: AT_ONCE }
  return { store, cores, requests }
}

/** Starts as many workers as processors, on a chosen port: with port 0, Node would balance the connections of processes. */
const start = async ({ store, cores }: Setup): Promise<Server> => {
  const env = { WORKERS: String(cores.length), PORT: String(await freePort()) }
  return startService(store, env, { processes: cores.length, cores })
}

/** The figures without latencies, which mean nothing for pipelined requests. */
const rates = (name: string, samples: readonly Sample[]): readonly Finding[] =>
  findingsOf(name, samples).filter(({ unit }) => unit !== 'ms')

/**
 * Compares one processor with a worker and a wrk thread to two processors with two of each (`taskset`). On a machine with two
 * processors, two workers would leave none to the load generator, but one worker would leave one, and the throughput would depend
 * on the generator. This way both sides include its cost. With pipelining, that is a quarter of the service's cost.
 *
 * Two effects count against the workers: PostgreSQL, which is not pinned, finds no idle processor; and the kernel assigns half of a
 * thread's connections to the worker on the other processor. The latter matters most: on a machine where this scenario gives 1.5,
 * two separate services reached 1.93 times the throughput of one with a thread on the same processor each, and 1.37 times with
 * the threads swapped. Requests per CPU second of the service (primary and workers) times the number of workers is the throughput
 * if each worker had a processor to itself and never waited.
 */
const run = async (bench: Bench, engine: Engine): Promise<Finding[]> => {
  const cores = coresToPin().slice(0, WORKERS)
  const two = await setUp(engine, cores)
  const one = await setUp(engine, cores.slice(0, 1))
  return withServers([() => start(two), () => start(one)], async (both, alone) => {
    for (let time = 0; time < TIMES; time += 1) await sendAll(both.url, two.requests)
    const { sides, throughputRatio, cpuRatio } = await compare(
      bench,
      { name: '2 workers', server: both, requests: two.requests, cores: two.cores },
      { name: '1 worker', server: alone, requests: one.requests, cores: one.cores },
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
}

const title = (database: string): string =>
  `GET /account on ${database}, 10,000 users in rotation, ${AT_ONCE} requests at once on a connection; each processor carries a worker and its share of the load`

export const workers: Scenario = {
  name: 'workers',
  title: title('PostgreSQL'),
  run: bench => run(bench, 'postgres'),
}

/** Threads instead of processes. */
export const workersSqlite: Scenario = {
  name: 'workers-sqlite',
  title: title('SQLite'),
  run: bench => run(bench, 'sqlite'),
}
