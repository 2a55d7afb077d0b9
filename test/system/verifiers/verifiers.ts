/**
 * Histories of revocations beside verifiers (docs/verifying.md, "The bound"), on SQLite with two workers and on PostgreSQL with two instances.
 *
 * `npm run test:verifiers -- --operations 100000 --seed 1 --only postgres`. With `--broken` the verifier counts the age of what it keeps from
 * receiving instead of sending: the histories must find it.
 */
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { type PostgresServer, startPostgres } from '../../../scripts/postgres-server.ts'
import { ADMIN_KEY, temporaryFolder } from '../../support/build.ts'
import { print, seedOf, startExperiment } from '../../support/experiment.ts'
import { startServer } from '../../support/process.ts'
import { createRandom } from '../../support/random.ts'
import { runHistory, VERIFIER } from '../../support/verifier-histories.ts'

const { values } = parseArgs({
  options: {
    operations: { type: 'string', default: '100000' },
    seed: { type: 'string' },
    only: { type: 'string', multiple: true, default: ['sqlite', 'postgres'] },
    broken: { type: 'boolean', default: false },
  },
})

/** Milliseconds of one history. */
const DURATION = 30_000
const LIMIT = 3_600_000

const RULE = 'this.#freshAt = sentAt'

const seed = seedOf(values.seed)
let postgres: PostgresServer | null = null
const { context, cleanUp } = startExperiment(LIMIT, () => postgres?.stop())

const brokenVerifier = (): string => {
  const folder = join(temporaryFolder(context), 'verifier')
  cpSync(dirname(VERIFIER), folder, { recursive: true })
  const file = join(folder, 'verifier.ts')
  const source = readFileSync(file, 'utf8')
  if (!source.includes(RULE)) throw new Error(`verifier/verifier.ts has no ${RULE}`)
  writeFileSync(file, source.replace(RULE, 'this.#freshAt = performance.now()'))
  return file
}

const runEngine = async (name: string): Promise<boolean> => {
  if (name === 'postgres') postgres = await startPostgres({ durable: false })
  const env: Record<string, string> =
    postgres === null ? { WORKERS: '2' } : { DATABASE_URL: postgres.url, WORKERS: '1' }
  const servers = [await startServer(context, { env })]
  if (postgres !== null) servers.push(await startServer(context, { env }))
  const services = {
    urls: servers.map(({ url }) => url),
    processes: servers.map(({ process }) => process),
    adminKey: ADMIN_KEY,
  }
  const random = createRandom(seed)
  const verifier = values.broken ? brokenVerifier() : VERIFIER
  let operations = 0
  const delays: number[] = []
  const late: number[] = []
  while (operations < Number(values.operations)) {
    const history = await runHistory(context, services, random, DURATION, verifier)
    operations += history.sessions * 3 + history.verifications
    delays.push(...history.delays)
    late.push(...history.late)
    const { sessions, verifications, hits, faults } = history
    print(JSON.stringify({ name, sessions, verifications, hits, faults, late: history.late }))
  }
  delays.sort((one, other) => one - other)
  const quantile = (part: number): string =>
    `${delays[Math.floor(part * (delays.length - 1))]?.toFixed(0)} ms`
  print(`${name}: ${operations} operations, ${delays.length} revocations, ${late.length} later than a second`)
  print(
    `${name}: last use after the acknowledgement: median ${quantile(0.5)}, 99 % ${quantile(0.99)}, most ${quantile(1)}`,
  )
  await cleanUp()
  await postgres?.stop()
  postgres = null
  return late.length === 0
}

print(`seed ${seed}`)
const results: boolean[] = []
for (const name of values.only) results.push(await runEngine(name))
process.exit(results.every(Boolean) !== values.broken ? 0 : 1)
