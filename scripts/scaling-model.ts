/**
 * How many processes, connections and writes a number of users takes, as Markdown tables (docs/scaling.md). Costs are the
 * medians of bench/RESULTS.md; what nobody has measured is an assumption, and says so.
 * `node --import ./src/preload.js scripts/scaling-model.ts`
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { HEARTBEAT_INTERVAL } from '../src/storage/postgres/heartbeats.ts'

const RESULTS = readFileSync(join(import.meta.dirname, '..', 'bench', 'RESULTS.md'), 'utf8')

/** A median of the bench. @throws {Error} when the bench did not measure it. */
const measured = (scenario: string, row: string): number => {
  const section = RESULTS.split('\n## ').find(text => text.startsWith(`${scenario}\n`))
  const line = section?.split('\n').find(text => text.startsWith(`| ${row} | `))
  const figure = Number.parseFloat(line?.slice(row.length + 5).replaceAll(',', '') ?? '')
  if (!(figure > 0)) throw new Error(`bench/RESULTS.md has no row "${row}" in ${scenario}`)
  return figure
}

/** Seconds of CPU of a request whose token is remembered, and of one where most are not (on SQLite). */
const HIT = measured('account', 'service: CPU per request') / 1e6
const MISS = measured('million-users', 'uniform: CPU per request') / 1e6

/** Sign-ins a second that one core hashes. */
const SIGN_INS_PER_CORE = measured('sign-ins', 'sign-ins') / Number(/(\d+) × /.exec(RESULTS)?.[1])

/** Tokens that a process remembers (src/auth/authenticator.ts). */
const CAPACITY = 100_000

/** Rows that one statement writes (src/auth/last-requests.ts). */
const SLICE = 5_000

/** Notifications a second that a process sends itself (src/storage/postgres/heartbeats.ts). */
const HEARTBEATS = 1_000 / HEARTBEAT_INTERVAL

/** Assumption: how much of a core, and of PostgreSQL, is planned to be in use at the busiest timestamp. */
const UTILISATION = 0.5

/** Assumptions: what one PostgreSQL carries when it does nothing else, rows of a flush and small statements a second. */
const POSTGRES_ROWS = 50_000
const POSTGRES_STATEMENTS = 20_000

/** Assumptions about the busiest timestamp: who is active, how often, and how it compares to the average. */
const ACTIVE_SHARE = 0.05
const SECONDS_BETWEEN_REQUESTS = 10
const PEAK = 3
const GROWTH_PER_YEAR = 0.5

/** Everybody signs in once in a session's lifetime (SESSION_LIFETIME, 30 days). */
const SECONDS_BETWEEN_SIGN_INS = 30 * 86_400
const YEAR = 365 * 86_400

interface Load {
  readonly users: number
  readonly active: number
  /** A second. */
  readonly requests: number
  readonly signIns: number
  readonly signUps: number
}

interface Deployment {
  /** Seconds. The service's is 1. */
  readonly flushInterval: number
  /** `WORKERS` at most, and `DATABASE_CONNECTIONS`. */
  readonly workers: number
  readonly connections: number
  /** Whether a token always comes to the same process, or to any. */
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
  // Two at least, so that one may go. More processes remember more, and need less: the first number that is enough.
  let processes = 2
  const cores = () => requests * (hitsWith(processes) * (HIT - MISS) + MISS) + hashing
  while (cores() > processes * UTILISATION) processes += 1
  // A user is written once a flush by each process that they came to: expected pairs, of so many with so many requests.
  const pairs = active * (byToken ? 1 : processes)
  const rowsOfFlush = pairs * -Math.expm1((-requests * flushInterval) / pairs)
  const flushes = (processes * Math.ceil(rowsOfFlush / processes / SLICE)) / flushInterval
  const rows = rowsOfFlush / flushInterval
  const misses = requests * (1 - hitsWith(processes))
  // A lookup by e-mail and a write for each.
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

/** Two significant digits: the model has no more. */
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
    remembered: `${short(100 * hits)} %`,
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
