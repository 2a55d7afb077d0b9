/**
 * Kills the real server with SIGKILL while it writes, again and again on one database: what it acknowledged has to be
 * there, and nothing may be half there (DESIGN §7).
 *
 * `npm run test:crash -- --rounds 25 --seed 1`
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Running, startServer } from '../support/process.ts'
import { createRandom } from '../support/random.ts'
import type { Account } from './account.ts'
import { createClient } from './client.ts'
import { startLoad } from './load.ts'
import { inspectFile, verifySignIns, verifyTokens } from './verify.ts'

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '25' }, seed: { type: 'string' } },
})
const rounds = Number(values.rounds)
const seed = values.seed === undefined ? Date.now() % 1_000_000 : Number(values.seed)
const random = createRandom(seed)

/** Milliseconds of load before the kill, and of starting before a kill that comes even earlier. */
const LOAD = { min: 20, max: 1_200 }
const STARTING = { min: 50, max: 700 }

/** Every so many rounds a process is killed while it starts: while it migrates, or recovers what the last one left. */
const KILL_START_EVERY = 5

/** Faults that are printed of each round. */
const SHOWN = 20

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-crash-'))
const databaseFile = join(folder, 'crash.db')
const cleanups: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })]
const context = { teardown: (cleanup: () => unknown) => void cleanups.push(cleanup) }
const print = (line: string): void => void process.stdout.write(`${line}\n`)

const start = (): Promise<Running> =>
  startServer(context, { databaseFile, env: { NODE_ENV: 'production', LOG_LEVEL: 'info' } })

const killWhileStarting = async (): Promise<void> => {
  const handles: (() => unknown)[] = []
  const starting = startServer({ teardown: stop => void handles.push(stop) }, { databaseFile }).catch(
    () => null,
  )
  await sleep(random.integer(STARTING.min, STARTING.max))
  for (const stop of handles) await stop()
  await starting
}

const accounts: Account[] = []
const totals = { acknowledged: 0, lost: 0, half: 0, damaged: 0, failedRounds: 0 }

/** Prints what is wrong and counts it. @returns whether all is well. */
const check = (lost: readonly string[], unexpected: readonly string[] = []): boolean => {
  const { halves, integrity } = inspectFile(databaseFile)
  totals.lost += lost.length
  totals.half += halves.length
  if (integrity !== 'ok') totals.damaged += 1
  const faults = [...lost, ...halves, ...unexpected, ...(integrity === 'ok' ? [] : [integrity])]
  for (const fault of faults.slice(0, SHOWN)) print(`  ${fault}`)
  if (faults.length > SHOWN) print(`  and ${faults.length - SHOWN} more`)
  return faults.length === 0
}

/** @returns the server that took the killed one's place and proved itself: the next round's victim. */
const runRound = async (round: number, victim: Running): Promise<Running> => {
  const load = startLoad(createClient(victim.url), random, round, accounts)
  const timestamp = random.integer(LOAD.min, LOAD.max)
  await sleep(timestamp)
  await victim.stop('SIGKILL')
  const { acknowledged, created, changed, unexpected } = await load.stop()
  totals.acknowledged += acknowledged
  accounts.push(...created)
  if (round % KILL_START_EVERY === 0) await killWhileStarting()

  const server = await start()
  const client = createClient(server.url)
  const lost = await verifyTokens(client, [...new Set([...created, ...changed])])
  lost.push(...(await verifySignIns(client, created)))
  if (!check(lost, unexpected)) totals.failedRounds += 1
  print(
    `round ${round}: killed after ${timestamp} ms, ${created.length} sign-ups and ${acknowledged - created.length} ` +
      `changes acknowledged, ${lost.length} lost`,
  )
  return server
}

/** Every account of every round once more, and a stop as it should be. */
const verifyAll = async (server: Running): Promise<boolean> => {
  const client = createClient(server.url)
  const lost = [...(await verifyTokens(client, accounts)), ...(await verifySignIns(client, accounts))]
  const code = await server.stop('SIGTERM')
  return check(lost, code === 0 ? [] : [`the last server ended with ${code}`])
}

const cleanUp = async (): Promise<void> => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void cleanUp().finally(() => process.exit(1)))
}

print(`seed ${seed}`)
try {
  await killWhileStarting()
  let server = await start()
  for (let round = 1; round <= rounds; round += 1) server = await runRound(round, server)
  if (!(await verifyAll(server))) totals.failedRounds = Math.max(1, totals.failedRounds)
} finally {
  await cleanUp()
}
print(
  `${rounds} rounds, ${totals.acknowledged} acknowledged, ${totals.lost} lost, ${totals.half} half, ` +
    `integrity ${totals.damaged === 0 ? 'ok' : 'broken'}`,
)
print(`${rounds - totals.failedRounds} passed, ${totals.failedRounds} failed`)
process.exitCode = totals.failedRounds === 0 ? 0 : 1
