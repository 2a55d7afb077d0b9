/**
 * Computes the processes, connections and writes for a number of users, as Markdown tables (docs/scaling.md). Costs are the
 * medians of bench/RESULTS.md. What was not measured is marked as an assumption.
 * `node --import ./src/preload.js scripts/scaling-model.ts`
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { HEARTBEAT_INTERVAL } from '../src/storage/postgres/heartbeats.ts'

const RESULTS = readFileSync(join(import.meta.dirname, '..', 'bench', 'RESULTS.md'), 'utf8')

/** A median of the bench. @throws {Error} if the bench did not measure it. */
const measured = (scenario: string, row: string): number => {
  const section = RESULTS.split('\n## ').find(text => text.startsWith(`${scenario}\n`))
  const line = section?.split('\n').find(text => text.startsWith(`| ${row} | `))
  const figure = Number.parseFloat(line?.slice(row.length + 5).replaceAll(',', '') ?? '')
  if (!(figure > 0)) throw new Error(`bench/RESULTS.md has no row "${row}" in ${scenario}`)
  return figure
}

/** Seconds of CPU per request with a cached token, and with mostly uncached tokens (on SQLite). */
const HIT = measured('account', 'service: CPU per request') / 1e6
const MISS = measured('million-users', 'uniform: CPU per request') / 1e6

/** Sign-ins a second that one core hashes. */
const SIGN_INS_PER_CORE = measured('sign-ins', 'sign-ins') / Number(/(\d+) × /.exec(RESULTS)?.[1])

/** Tokens that a process caches (src/auth/authenticator.ts). */
const CAPACITY = 100_000

/** Rows per statement (src/auth/last-requests.ts). */
const SLICE = 5_000

/** Notifications per second that a process sends itself (src/storage/postgres/heartbeats.ts). */
const HEARTBEATS = 1_000 / HEARTBEAT_INTERVAL

/** Assumption: the planned utilization of a core, and of PostgreSQL, at peak. */
const UTILISATION = 0.5

/** Assumptions: the capacity of one PostgreSQL, in rows of a flush or small statements per second. */
const POSTGRES_ROWS = 50_000
const POSTGRES_STATEMENTS = 20_000

/** Assumptions about peak load: the share of active users, their requests, and peak over average. */
const ACTIVE_SHARE = 0.05
const SECONDS_BETWEEN_REQUESTS = 10
const PEAK = 3
const GROWTH_PER_YEAR = 0.5

/** Assumption: every user signs in once per session lifetime (SESSION_LIFETIME, 30 days). */
const SECONDS_BETWEEN_SIGN_INS = 30 * 86_400
const YEAR = 365 * 86_400

interface Load {
  readonly users: number
  readonly active: number
  /** Per second. */
  readonly requests: number
  readonly signIns: number
  readonly signUps: number
}

interface Deployment {
  /** Seconds; 1 in the service. */
  readonly flushInterval: number
  /** Maximum `WORKERS`, and `DATABASE_CONNECTIONS`. */
  readonly workers: number
  readonly connections: number
  /** Whether requests with the same token always reach the same process. */
  readonly byToken: boolean
}

const loadOf = (users: number): Load => ({
  users,
  active: users * ACTIVE_SHARE,
  requests: (users * ACTIVE_SHARE) / SECONDS_BETWEEN_REQUESTS,
  signIns: (PEAK * users) / SECONDS_BETWEEN_SIGN_INS,
  signUps: (PEAK * users * GROWTH_PER_YEAR) / YEAR,
})

const model = (load: Load, { flushInterval, workers, connections, byToken }: Deployment) => {
  const { active, requests, signIns, signUps } = load
  const hitsWith = (processes: number) => Math.min(1, (CAPACITY * (byToken ? processes : 1)) / active)
  const hashing = (signIns + signUps) / SIGN_INS_PER_CORE
  // At least two, for failover. More processes cache more and so need less CPU: find the first number that is enough.
  let processes = 2
  const cores = () => requests * (hitsWith(processes) * (HIT - MISS) + MISS) + hashing
  while (cores() > processes * UTILISATION) processes += 1
  // Each process writes a user once per flush: the expected number of (user, process) pairs with a request.
  const pairs = active * (byToken ? 1 : processes)
  const rowsOfFlush = pairs * -Math.expm1((-requests * flushInterval) / pairs)
  const flushes = (processes * Math.ceil(rowsOfFlush / processes / SLICE)) / flushInterval
  const rows = rowsOfFlush / flushInterval
  const misses = requests * (1 - hitsWith(processes))
  // A sign-in or sign-up is a lookup by e-mail and a write.
  const statements = misses + flushes + 2 * (signIns + signUps) + HEARTBEATS * processes
  return {
    processes,
    instances: Math.max(2, Math.ceil(processes / workers)),
    hits: hitsWith(processes),
    connections: processes * (connections + 1),
    rows,
    statements,
    wakeUps: HEARTBEATS * processes ** 2,
    postgres: (rows / POSTGRES_ROWS + statements / POSTGRES_STATEMENTS) / UTILISATION,
  }
}

/** Two significant digits, which is all that the model supports. */
const short = (value: number): string => value.toLocaleString('en', { maximumSignificantDigits: 2 })

const table = (rows: readonly Record<string, string>[]): string => {
  const names = Object.keys(rows[0] ?? {})
  const lines = [names, names.map(() => '--:'), ...rows.map(row => Object.values(row))]
  return lines.map(cells => `| ${cells.join(' | ')} |\n`).join('')
}

const row = (users: number, deployment: Deployment): Record<string, string> => {
  const load = loadOf(users)
  const { instances, processes, hits, connections, rows, statements, wakeUps, postgres } = model(
    load,
    deployment,
  )
  return {
    users: users.toLocaleString('en'),
    'requests/s': short(load.requests),
    'sign-ins + sign-ups /s': `${short(load.signIns)} + ${short(load.signUps)}`,
    'requests spread': deployment.byToken ? 'by token' : 'at random',
    'flush every': `${deployment.flushInterval} s`,
    cached: `${short(100 * hits)} %`,
    'instances (processes)': `${instances} (${processes})`,
    connections: connections.toLocaleString('en'),
    'flush rows/s': short(rows),
    'statements/s': short(statements),
    'wake-ups/s by heartbeats': short(wakeUps),
    'PostgreSQL, in servers': short(postgres),
  }
}

const usual = { flushInterval: 1, workers: 8, connections: 10 }
const spread = (users: number) => [false, true].map(byToken => row(users, { ...usual, byToken }))
const flushed = [1, 10, 60].map(flushInterval => row(1e8, { ...usual, flushInterval, byToken: true }))

process.stdout.write(`${table([1e4, 1e6, 1e7, 1e8].flatMap(spread))}\n${table(flushed)}`)
