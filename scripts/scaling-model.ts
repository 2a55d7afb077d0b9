/**
 * Computes the processes, connections, writes, memory and disk for a number of users, as Markdown tables (docs/scaling.md). Costs
 * are the medians of the bench on SQLite (bench/results/sqlite.json). What was not measured is marked as an assumption.
 * `node --import ./src/preload.js scripts/scaling-model.ts`
 */
import { HEARTBEAT_INTERVAL } from '#storage/postgres/heartbeats'
import { readRun } from '../bench/report.ts'

const RUN = readRun('sqlite')

/** A median of the bench. @throws {Error} if the bench did not measure it. */
const measured = (name: string, what: string): number => {
  const scenario = RUN.scenarios.find(each => each.name === name)
  const findings = scenario && 'findings' in scenario ? scenario.findings : []
  const finding = findings.find(each => each.what === what)
  if (finding === undefined) throw new Error(`The results of the bench have no figure "${what}" in ${name}`)
  return finding.value.median
}

/** Seconds of CPU per request with a cached token. */
const HIT = measured('account', 'service: CPU per request') / 1e6

/** The CPU of a request whose token is not cached by that of one whose token is; on PostgreSQL behind 1 ms of network delay. */
const MISS: Record<Engine, number> = {
  SQLite: HIT * measured('million-users', 'CPU, beyond the capacity ÷ 10,000 users'),
  PostgreSQL: HIT * measured('network-delay', 'CPU, cache miss ÷ cached token, far'),
}

/** Sign-ins a second that one core hashes. */
const SIGN_INS_PER_CORE = measured('sign-ins', 'sign-ins') / RUN.conditions.cores

/** Megabytes: a process, each further worker of one on SQLite (docs/scaling.md), and a cached token with its user. */
const IDLE = measured('memory', 'idle')
const FURTHER_WORKER = 80
const CACHED_TOKEN = measured('memory', 'more with 100,000 cached tokens') / 100_000

/**
 * Bytes on PostgreSQL with indexes, measured once with `pg_total_relation_size` after 100,000 rows or more of the bench's users: a
 * user (716) with one session (249) and the last request (112), and an event. And the SQLite file by its users.
 */
const USER_BYTES: Record<Engine, number> = { SQLite: 756, PostgreSQL: 716 + 249 + 112 }
const EVENT_BYTES = 761

/** Two values of CACHE_SIZE: the default of a small container, and that with 4 GB of memory for each worker. */
const SMALL_CACHE = 100_000
const LARGE_CACHE = 1_000_000

/** Rows per statement (src/core/auth/last-requests.ts). */
const SLICE = 5_000

/** Heartbeats per second and process (src/storage/postgres/heartbeats.ts). */
const HEARTBEATS = 1_000 / HEARTBEAT_INTERVAL

/** Assumption: the planned utilization of a core, and of PostgreSQL, at peak. */
const UTILISATION = 0.5

/** Assumptions: the capacity of one PostgreSQL, in rows of a flush, small statements or pages of lists per second. */
const POSTGRES_ROWS = 50_000
const POSTGRES_STATEMENTS = 20_000
const POSTGRES_LISTS = 1_000

/** Assumptions about peak load: the share of active users, their requests, how many of these are lists, and peak over average. */
const ACTIVE_SHARE = 0.05
const SECONDS_BETWEEN_REQUESTS = 10
const LISTS_SHARE = 0.001
const PEAK = 3
const GROWTH_PER_YEAR = 0.5

/** Assumption: every user signs in once per session lifetime (SESSION_LIFETIME, 30 days), which is one event. */
const SECONDS_BETWEEN_SIGN_INS = 30 * 86_400
const YEAR = 365 * 86_400

type Engine = 'SQLite' | 'PostgreSQL'

interface Load {
  readonly users: number
  readonly active: number
  readonly requests: number
  readonly signIns: number
  readonly signUps: number
}

interface Deployment {
  readonly engine: Engine
  /** Seconds; 1 in the service. */
  readonly flushInterval: number
  /** Maximum `WORKERS`, and `DATABASE_CONNECTIONS`. */
  readonly workers: number
  readonly connections: number
  /** Whether requests with the same token always reach the same process. */
  readonly byToken: boolean
  readonly cacheSize: number
  readonly hasReplica: boolean
}

const loadOf = (users: number): Load => ({
  users,
  active: users * ACTIVE_SHARE,
  requests: (users * ACTIVE_SHARE) / SECONDS_BETWEEN_REQUESTS,
  signIns: (PEAK * users) / SECONDS_BETWEEN_SIGN_INS,
  signUps: (PEAK * users * GROWTH_PER_YEAR) / YEAR,
})

const memoryOf = (engine: Engine, processes: number, tokens: number): number =>
  engine === 'SQLite'
    ? IDLE + (processes - 1) * FURTHER_WORKER + processes * tokens * CACHED_TOKEN
    : processes * (IDLE + tokens * CACHED_TOKEN)

const model = (load: Load, deployment: Deployment) => {
  const { engine, flushInterval, workers, connections, byToken, cacheSize, hasReplica } = deployment
  const { users, active, requests, signIns, signUps } = load
  const isShared = engine === 'PostgreSQL'
  const hitsWith = (processes: number) => Math.min(1, (cacheSize * (byToken ? processes : 1)) / active)
  const hashing = (signIns + signUps) / SIGN_INS_PER_CORE
  // On PostgreSQL at least two, for failover. More processes cache more and so need less CPU: find the first number that is enough.
  let processes = isShared ? 2 : 1
  const cores = () => requests * (hitsWith(processes) * (HIT - MISS[engine]) + MISS[engine]) + hashing
  while (cores() > processes * UTILISATION) processes += 1
  const instances = isShared ? Math.max(2, Math.ceil(processes / workers)) : 1
  // Each process writes a user once per flush: the expected number of (user, process) pairs with a request.
  const pairs = active * (byToken ? 1 : processes)
  const rowsOfFlush = pairs * -Math.expm1((-requests * flushInterval) / pairs)
  const flushes = (processes * Math.ceil(rowsOfFlush / processes / SLICE)) / flushInterval
  const rows = rowsOfFlush / flushInterval
  const misses = requests * (1 - hitsWith(processes))
  const lists = requests * LISTS_SHARE
  // A sign-in or sign-up is a lookup by e-mail and a write.
  const statements = misses + flushes + 2 * (signIns + signUps) + HEARTBEATS * processes
  const ofLists = lists / POSTGRES_LISTS / UTILISATION
  const ofRest = (rows / POSTGRES_ROWS + statements / POSTGRES_STATEMENTS) / UTILISATION
  const tokens = Math.min(cacheSize, byToken ? active / processes : active)
  return {
    processes,
    instances,
    hits: hitsWith(processes),
    memory: memoryOf(engine, Math.ceil(processes / instances), tokens),
    connections: processes * (connections + 1),
    rows,
    statements,
    primary: hasReplica ? ofRest : ofRest + ofLists,
    replica: ofLists,
    usersOnDisk: users * USER_BYTES[engine],
    eventsOnDisk: (users * YEAR * EVENT_BYTES) / SECONDS_BETWEEN_SIGN_INS,
  }
}

/** Two significant digits, which is all that the model supports. */
const short = (value: number): string => value.toLocaleString('en', { maximumSignificantDigits: 2 })

const bytes = (value: number): string =>
  value >= 1e12
    ? `${short(value / 1e12)} TB`
    : value >= 1e9
      ? `${short(value / 1e9)} GB`
      : `${short(value / 1e6)} MB`

const table = (rows: readonly Record<string, string>[]): string => {
  const names = Object.keys(rows[0] ?? {})
  const lines = [names, names.map(() => '--:'), ...rows.map(row => Object.values(row))]
  return lines.map(cells => `| ${cells.join(' | ')} |\n`).join('')
}

/** What is needed, and where: on the machines of the service. */
const serviceRow = (users: number, deployment: Deployment): Record<string, string> => {
  const load = loadOf(users)
  const found = model(load, deployment)
  return {
    users: users.toLocaleString('en'),
    'requests/s': short(load.requests),
    'sign-ins + sign-ups /s': `${short(load.signIns)} + ${short(load.signUps)}`,
    store: deployment.engine,
    'requests spread': deployment.byToken ? 'by token' : 'at random',
    CACHE_SIZE: deployment.cacheSize.toLocaleString('en'),
    cached: `${short(100 * found.hits)} %`,
    'instances (processes)': `${found.instances} (${found.processes})`,
    'memory of an instance': bytes(found.memory * 1e6),
    'users on disk': bytes(found.usersOnDisk),
    'events of a year': bytes(found.eventsOnDisk),
  }
}

/** The load of PostgreSQL. */
const databaseRow = (users: number, deployment: Deployment): Record<string, string> => {
  const found = model(loadOf(users), deployment)
  return {
    users: users.toLocaleString('en'),
    'requests spread': deployment.byToken ? 'by token' : 'at random',
    CACHE_SIZE: deployment.cacheSize.toLocaleString('en'),
    'flush every': `${deployment.flushInterval} s`,
    'connections to the primary': found.connections.toLocaleString('en'),
    'flush rows/s': short(found.rows),
    'statements/s': short(found.statements),
    'primary, in servers': short(found.primary),
    'replica, in servers': deployment.hasReplica ? short(found.replica) : 'none',
  }
}

const usual: Deployment = {
  engine: 'PostgreSQL',
  flushInterval: 1,
  workers: 8,
  connections: 10,
  byToken: false,
  cacheSize: SMALL_CACHE,
  hasReplica: false,
}
const embedded: Deployment = { ...usual, engine: 'SQLite' }
const larger = { cacheSize: LARGE_CACHE }
const replicated = { hasReplica: true }

const steps: readonly [users: number, deployment: Deployment][] = [
  [1e4, embedded],
  [1e5, embedded],
  [1e6, embedded],
  [1e6, usual],
  [1e7, { ...usual, ...replicated }],
  [1e7, { ...usual, ...replicated, byToken: true }],
  [1e7, { ...usual, ...replicated, ...larger }],
  [1e8, { ...usual, ...replicated, ...larger }],
  [1e8, { ...usual, ...replicated, byToken: true }],
]
const onPostgres = steps.filter(([, { engine }]) => engine === 'PostgreSQL')
const flushed = [10, 60, 300].map((flushInterval): [number, Deployment] => [
  1e8,
  { ...usual, ...replicated, byToken: true, flushInterval },
])

process.stdout.write(
  `${table(steps.map(step => serviceRow(...step)))}\n${table([...onPostgres, ...flushed].map(step => databaseRow(...step)))}`,
)
