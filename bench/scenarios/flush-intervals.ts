import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { runSockets } from '../load/sockets.ts'
import { startService, withServers } from '../processes.ts'
import { bearer, rawRequest } from '../requests.ts'
import { type Bench, type Finding, type Scenario, single } from '../scenario.ts'
import { createStore } from '../stores.ts'

/** Seconds. */
const INTERVALS = [1, 60, 300] as const

const USERS = 10_000

/** Seconds between two requests of a user, as in scripts/scaling-model.ts. */
const BETWEEN_REQUESTS = 10

/** Seconds of load: the longest interval. */
const LENGTH = 300

/** Seconds after which a connection of PostgreSQL has reported its counts. */
const REPORTED = 5

/** The last requests of users that the service has written to a database so far. */
const rowsIn = async (url: string): Promise<number> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<{ count: number }>(
      `SELECT (n_tup_ins + n_tup_upd)::int AS count FROM pg_stat_user_tables WHERE relname = 'last_requests'`,
    )
    return rows[0]?.count ?? 0
  } finally {
    await client.end()
  }
}

const measure = async ({ engine }: Bench, interval: number): Promise<Finding> => {
  const store = await createStore(engine, USERS)
  const url = String(store.environment.DATABASE_URL)
  const requests = (await store.tokens(USERS)).map(token =>
    rawRequest({ method: 'GET', path: '/account', headers: bearer(token) }),
  )
  const start = () => startService(store, { LAST_REQUEST_INTERVAL: `${interval}s` })
  const rows = await withServers([start], async server => {
    const before = await rowsIn(url)
    let sent = 0
    const next = (): string => {
      sent += 1
      return requests[sent % USERS] ?? ''
    }
    const rate = USERS / BETWEEN_REQUESTS
    await runSockets({ url: server.url, connections: 8, seconds: LENGTH, rate, next })
    await delay((interval + REPORTED) * 1_000)
    return (await rowsIn(url)) - before
  })
  return { what: `rows a second, flushed every ${interval} s`, value: single(rows / LENGTH), unit: '/s' }
}

export const flushIntervals: Scenario = {
  name: 'flush-intervals',
  title: '10,000 active users, each with a request every 10 s: the last requests that are written',
  onDemand: true,
  run: bench => Promise.all(INTERVALS.map(interval => measure(bench, interval))),
}
