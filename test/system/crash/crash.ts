/**
 * Kills the real server with SIGKILL while it writes, repeatedly on one database. Everything acknowledged must be stored,
 * and nothing may be stored partially (docs/design.md, "Storage"). Then kills a process with a consumer of events and a webhook, four times
 * as often, on each engine; not with `--workers`, which changes nothing of either.
 *
 * `npm run test:crash -- --rounds 25 --seed 1 --workers 2`
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Context, newFile } from '../../support/build.ts'
import { print, seedOf, startExperiment } from '../../support/experiment.ts'
import { newDatabase } from '../../support/postgres.ts'
import { type Running, startServer } from '../../support/process.ts'
import { createRandom } from '../../support/random.ts'
import type { Account } from './account.ts'
import { createClient } from './client.ts'
import { type FileReport, inspectFile } from './database-file.ts'
import { killFollowers } from './follower-kills.ts'
import { startLoad } from './load.ts'
import { signUpAgain, verifyAccounts } from './verify.ts'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '25' },
    seed: { type: 'string' },
    workers: { type: 'string', default: '1' },
  },
})
const rounds = Number(values.rounds)
const seed = seedOf(values.seed)
const random = createRandom(seed)

/** Milliseconds of load before the kill, and of starting before an early kill. */
const LOAD = { min: 20, max: 1_200 }
const STARTING = { min: 50, max: 700 }

/** Every nth round kills the process while it starts: while it migrates, or recovers the write-ahead log. */
const KILL_START_EVERY = 3

/** Milliseconds that the whole run may take. */
const LIMIT = { base: 240_000, round: 60_000 }

/** Kills of a process with followers of events for each round, on each engine. */
const FOLLOWER_KILLS = 4

/** Errors that are printed per round. */
const SHOWN = 20

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-crash-'))
const databaseFile = join(folder, 'crash.db')
const { context, cleanUp } = startExperiment(LIMIT.base + LIMIT.round * rounds)
context.teardown(() => rmSync(folder, { recursive: true, force: true }))

const start = (): Promise<Running> =>
  startServer(context, {
    databaseFile,
    env: { NODE_ENV: 'production', LOG_LEVEL: 'info', WORKERS: values.workers },
  })

const killWhileStarting = async (): Promise<void> => {
  const handles: (() => unknown)[] = []
  const starting = startServer(
    { teardown: stop => void handles.push(stop) },
    { databaseFile, env: { WORKERS: values.workers } },
  ).catch(() => null)
  await sleep(random.integer(STARTING.min, STARTING.max))
  for (const stop of handles) await stop()
  await starting
}

const accounts: Account[] = []
const totals = { signUps: 0, lost: 0, half: 0, damaged: 0, failedRounds: 0 }

/** How often each kind of change was acknowledged, and how often it was in flight at a kill. */
const changes = new Map<string, { acknowledged: number; inFlight: number }>()

const countChanges = (kinds: readonly string[], as: 'acknowledged' | 'inFlight'): void => {
  for (const kind of kinds) {
    const counts = changes.get(kind) ?? { acknowledged: 0, inFlight: 0 }
    counts[as] += 1
    changes.set(kind, counts)
  }
}

/** Prints and counts errors. @returns whether there are none. */
const check = (
  { halves, integrity }: FileReport,
  lost: readonly string[],
  unexpected: readonly string[] = [],
) => {
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
  const { acknowledged, inFlight, created, changed, signInChanged, unexpected } = await load.stop()
  totals.signUps += created.length
  countChanges(acknowledged, 'acknowledged')
  countChanges(inFlight, 'inFlight')
  accounts.push(...created)
  if (round % KILL_START_EVERY === 0) await killWhileStarting()

  const server = await start()
  // Before the sign-ins below: a session that they open would hide that the one of the sign-up is missing.
  const report = inspectFile(databaseFile)
  const client = createClient(server.url)
  const touched = new Set([...created, ...changed])
  const lost = await verifyAccounts(client, [...touched], new Set([...created, ...signInChanged]))
  const again = await signUpAgain(
    client,
    [...touched].filter(({ state }) => state.acknowledged.removed),
    round,
  )
  accounts.push(...again.created)
  lost.push(...again.failed)
  if (!check(report, lost, unexpected)) totals.failedRounds += 1
  print(
    `round ${round}: killed after ${timestamp} ms, ${created.length} sign-ups and ${acknowledged.length} ` +
      `changes acknowledged, ${lost.length} lost`,
  )
  return server
}

/** Checks every account of every round once more, and stops the server gracefully. */
const verifyAll = async (server: Running): Promise<boolean> => {
  const lost = await verifyAccounts(createClient(server.url), accounts, new Set(accounts))
  const code = await server.stop('SIGTERM')
  return check(inspectFile(databaseFile), lost, code === 0 ? [] : [`the last server ended with ${code}`])
}

/** @returns whether every event was handled, and delivered, in order. */
const runKills = async (
  engine: string,
  newDatabase: (context: Context) => Promise<string>,
): Promise<boolean> => {
  const kills = rounds * FOLLOWER_KILLS
  const { events, handledAgain, sentAgain, failures } = await killFollowers(
    context,
    await newDatabase(context),
    random,
    kills,
  )
  for (const failure of failures.slice(0, SHOWN)) print(`  ${failure}`)
  print(
    `followers on ${engine}: ${kills} kills, ${events} events, ${handledAgain} handled and ${sentAgain} sent again, ` +
      `${failures.length} failures`,
  )
  return failures.length === 0
}

print(`seed ${seed}`)
let areFollowersRight = false
try {
  await killWhileStarting()
  let server = await start()
  for (let round = 1; round <= rounds; round += 1) server = await runRound(round, server)
  if (!(await verifyAll(server))) totals.failedRounds = Math.max(1, totals.failedRounds)
  areFollowersRight =
    values.workers !== '1' ||
    ((await runKills('SQLite', newFile)) && (await runKills('PostgreSQL', newDatabase)))
} finally {
  await cleanUp()
}
for (const [kind, { acknowledged, inFlight }] of changes)
  print(`${kind}: ${acknowledged} acknowledged, ${inFlight} in flight`)
const acknowledged = [...changes.values()].reduce((sum, counts) => sum + counts.acknowledged, totals.signUps)
print(
  `${rounds} rounds, ${acknowledged} acknowledged, ${totals.lost} lost, ${totals.half} half, ` +
    `integrity ${totals.damaged === 0 ? 'ok' : 'broken'}`,
)
print(`${rounds - totals.failedRounds} passed, ${totals.failedRounds} failed`)
process.exitCode = totals.failedRounds === 0 && areFollowersRight ? 0 : 1
