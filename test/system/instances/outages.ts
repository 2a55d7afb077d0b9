/**
 * One instance is killed, the database crashes, both at once, or the database stays down, under load: no acknowledged
 * write is lost, nothing is stored twice or partially, and a repeated request gets one definite response.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { TimedResponse } from './http.ts'
import { meets, type Span, startPair } from './instance.ts'
import { inspectDatabase, verifyAccounts } from './outage-check.ts'
import { startOutageLoad } from './outage-load.ts'
import type { Part } from './part.ts'
import { Readiness } from './readiness.ts'
import { milliseconds, Report } from './report.ts'
import { Journal } from './response-checks.ts'
import { PairClient } from './retrying-client.ts'

/** Outages, one kind per round. */
const KINDS = ['instance', 'database', 'both', 'database away'] as const

/** Milliseconds of load before it, until a killed instance is started, and for which the database stays down in its kind. */
const LOAD = { min: 600, max: 2_000 }
const RESTART = { min: 50, max: 500 }
const AWAY = 2_000

/** Milliseconds within which an instance is ready once its dependencies are back. */
const RECOVERY = 5_000

export const runOutages = async ({
  context,
  random,
  rounds,
  postgres,
  databaseUrl,
  env,
}: Part): Promise<Report> => {
  const report = new Report('Outages: kill -9 of an instance, crash of PostgreSQL')
  const journal = new Journal()
  const pair = await startPair(context, env)
  const client = new PairClient(pair, journal, random)
  const watched = pair.map(instance => new Readiness(instance, journal))
  const load = startOutageLoad(client, journal, random)
  const aways: Span[] = []
  const recoveries: number[] = []
  const unready: string[] = []
  let kills = 0

  const killOne = async (): Promise<void> => {
    const victim = pair[random.integer(0, 1) as 0 | 1]
    kills += 1
    await victim.stop('SIGKILL')
    await sleep(random.integer(RESTART.min, RESTART.max))
    await victim.start()
  }
  const crashDatabase = async (away: number): Promise<void> => {
    const span = { from: performance.now(), to: Number.POSITIVE_INFINITY }
    aways.push(span)
    await postgres.crash(away)
    span.to = performance.now()
    for (const readiness of watched) unready.push(...readiness.faultsDuring(span, away))
  }
  const recover = async (readiness: Readiness): Promise<void> => {
    const back = performance.now()
    const ready = await readiness.since(back, RECOVERY)
    if (ready === null) unready.push(`${readiness.instance.name} /ready: not 200 within ${RECOVERY} ms`)
    else recoveries.push(ready - back)
  }

  for (let round = 0; round < rounds; round += 1) {
    await sleep(random.integer(LOAD.min, LOAD.max))
    const kind = KINDS[round % KINDS.length]
    await Promise.all([
      (kind === 'instance' || kind === 'both') && killOne(),
      kind !== 'instance' && crashDatabase(kind === 'database away' ? AWAY : 0),
    ])
    await Promise.all(watched.map(recover))
  }
  await sleep(LOAD.min)
  await load.stop()
  const lost = await verifyAccounts(client, pair, load.accounts)
  await Promise.all(watched.map(readiness => readiness.stop()))
  const stopped = await Promise.all(pair.map(instance => instance.stop('SIGTERM')))
  client.close()
  const database = await inspectDatabase(databaseUrl, load.accounts, load.sent)

  /** Milliseconds after the database is back from which 503 is an error. */
  const isUnfounded = ({ sentAt, respondedAt }: TimedResponse): boolean =>
    !aways.some(({ from, to }) => meets({ from, to: to + RECOVERY }, sentAt, respondedAt))
  const unfounded = client.unavailable.filter(isUnfounded)

  report.figure('rounds', `${rounds}: ${kills} kills, ${aways.length} crashes of the database`)
  report.figure('responses', journal.responses)
  report.figure('503 · responses lost to kills', `${client.unavailable.length} · ${client.lost}`)
  report.figure('slowest response', milliseconds(journal.slowest))
  report.figure('ready again, at most', milliseconds(Math.max(0, ...recoveries)))
  report.figure('sign-ups sent · on both at once', `${load.sent.size} · ${load.contested}`)
  report.figure('accounts acknowledged · in database', `${load.accounts.length} · ${database.users}`)
  report.failures('lost', [...lost, ...database.strays])
  report.failures('twice', database.duplicates)
  report.failures('half', database.halves)
  report.failures('wrong responses', journal.failures)
  report.failures('wrong readiness', unready)
  report.failures(
    '503 while the database was there',
    unfounded.map(({ text }) => text),
  )
  report.expect(
    stopped.every(code => code === 0),
    `after all that, SIGTERM ended them with ${stopped}`,
  )
  report.expect(load.accounts.length > rounds, 'hardly any account was acknowledged')
  return report
}
