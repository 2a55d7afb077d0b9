/**
 * Kills the real server with SIGKILL while it writes, repeatedly on one database. Everything acknowledged must be stored,
 * and nothing may be stored partially (DESIGN §7).
 *
 * `npm run test:crash -- --rounds 25 --seed 1`
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { print, seedOf, startExperiment } from '../support/experiment.ts'
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
const seed = seedOf(values.seed)
const random = createRandom(seed)

/** Milliseconds of load before the kill, and of starting before an early kill. */
const LOAD = { min: 20, max: 1_200 }
const STARTING = { min: 50, max: 700 }

/** Every nth round kills the process while it starts: while it migrates, or recovers the write-ahead log. */
const KILL_START_EVERY = 5

/** Milliseconds that the whole run may take. */
const LIMIT = { base: 240_000, round: 60_000 }

/** Errors that are printed per round. */
const SHOWN = 20

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-crash-'))
const databaseFile = join(folder, 'crash.db')
const { context, cleanUp } = startExperiment(LIMIT.base + LIMIT.round * rounds)
context.teardown(() => rmSync(folder, { recursive: true, force: true }))

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

/** Prints and counts errors. @returns whether there are none. */
const check = (lost: readonly string[], unexpected: readonly string[] = []): boolean => {
  const { halves, integrity } = inspectFile(databaseFile)
  totals.lost += lost.length
  totals.half += halves.length
  if (integrity !== 'ok') totals.damaged += 1
  const failures = [...lost, ...halves, ...unexpected, ...(integrity === 'ok' ? [] : [integrity])]
  for (const failure of failures.slice(0, SHOWN)) print(`  ${failure}`)
  if (failures.length > SHOWN) print(`  and ${failures.length - SHOWN} more`)
  return failures.length === 0
}

/** @returns the server that replaced the killed one and passed the checks. The next round kills it. */
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

/** Checks every account of every round once more, and stops the server gracefully. */
const verifyAll = async (server: Running): Promise<boolean> => {
  const client = createClient(server.url)
  const lost = [...(await verifyTokens(client, accounts)), ...(await verifySignIns(client, accounts))]
  const code = await server.stop('SIGTERM')
  return check(lost, code === 0 ? [] : [`the last server ended with ${code}`])
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
