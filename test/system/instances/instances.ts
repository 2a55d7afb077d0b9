/**
 * Many instances on one PostgreSQL, as real processes on real sockets: outages, failovers, rolling restarts, revocation,
 * workers (docs/design.md, "Storage").
 *
 * `npm run test:instances -- --rounds 8 --seed 1 --only rolling`
 */
import { parseArgs } from 'node:util'
import { type PostgresServer, startPostgres } from '../../../scripts/postgres-server.ts'
import { print, seedOf, startExperiment } from '../../support/experiment.ts'
import { query } from '../../support/postgres.ts'
import { createRandom } from '../../support/random.ts'
import { runDatabaseStall } from './database-stall.ts'
import { runFailover } from './failover.ts'
import { runAsynchronousFailover } from './failover-asynchronous.ts'
import { runRevocationHistories, runWorkerHistories } from './histories.ts'
import { runOutages } from './outages.ts'
import type { Part } from './part.ts'
import { runRefreshHistories } from './refresh.ts'
import type { Report } from './report.ts'
import { runRevocation } from './revocation.ts'
import { runRevocationCosts } from './revocation-costs.ts'
import { runRevocationCut } from './revocation-cut.ts'
import { runRolling } from './rolling.ts'
import { runWorkers } from './workers.ts'

const PARTS: Readonly<Record<string, (part: Part) => Promise<Report>>> = {
  outages: runOutages,
  failover: runFailover,
  'failover-asynchronous': runAsynchronousFailover,
  rolling: runRolling,
  revocation: runRevocation,
  'revocation-cut': runRevocationCut,
  'revocation-histories': runRevocationHistories,
  'worker-histories': runWorkerHistories,
  'refresh-histories': runRefreshHistories,
  'revocation-costs': runRevocationCosts,
  'database-stall': runDatabaseStall,
  workers: runWorkers,
}

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '8' },
    seed: { type: 'string' },
    only: { type: 'string', multiple: true, default: Object.keys(PARTS) },
  },
})
/** Milliseconds that a part may take. */
const LIMIT = { base: 240_000, round: 300_000 }

const rounds = Number(values.rounds)
const seed = seedOf(values.seed)
let postgres: PostgresServer | null = null
const { context, cleanUp, abandon } = startExperiment(
  (LIMIT.base + LIMIT.round * rounds) * values.only.length,
  () => postgres?.stop(),
)

/** A separate database for each part, so that parts do not affect each other. */
const createDatabase = async (server: string, name: string): Promise<string> => {
  await query(server, `CREATE DATABASE "${name}"`)
  const url = new URL(server)
  url.pathname = name
  return url.href
}

const runAll = async (names: readonly string[]): Promise<string[]> => {
  const failed: string[] = []
  postgres = await startPostgres({ durable: true })
  for (const name of names) {
    const run = PARTS[name]
    if (run === undefined) throw new Error(`there is no part ${name}, only ${Object.keys(PARTS).join(', ')}`)
    const begin = performance.now()
    const databaseUrl = await createDatabase(postgres.url, name)
    const env = { DATABASE_URL: databaseUrl }
    const report = await run({ context, random: createRandom(seed), rounds, postgres, databaseUrl, env })
    await cleanUp()
    report.figure('took', `${((performance.now() - begin) / 1_000).toFixed(1)} s`)
    if (!report.print()) failed.push(name)
  }
  await postgres.stop()
  return failed
}

print(`seed ${seed}`)
try {
  const failed = await runAll(values.only)
  print(failed.length === 0 ? '\nall passed' : `\nfailed: ${failed.join(', ')}`)
  process.exitCode = failed.length === 0 ? 0 : 1
} catch (error) {
  abandon(error)
}
