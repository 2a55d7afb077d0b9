/**
 * The primary is lost under load and its synchronous standby promoted, repeatedly: the instances find it without a restart,
 * no acknowledged write is lost, and no token is accepted after its revocation was acknowledged.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { lossesOf, startFailoverLoad } from './failover-load.ts'
import { calls, type TimedResponse } from './http.ts'
import { type Instance, meets, type Span, startPair } from './instance.ts'
import type { Part } from './part.ts'
import { type Loss, Replicated } from './replicated.ts'
import { milliseconds, Report, spread } from './report.ts'
import { Journal } from './response-checks.ts'
import { PairClient } from './retrying-client.ts'
import { createRevocables } from './revocation-users.ts'

/** Failovers per round of the run: 20 for its 8. */
const FAILOVERS = 2.5

const LOSSES: readonly Loss[] = ['killed', 'silent']

/** Milliseconds of load before each. */
const LOAD = { min: 600, max: 2_000 }

/** Milliseconds after the promotion within which each instance acknowledges a write, and until the check gives up. */
const RESTORED = 5_000
const GIVE_UP = 30_000

const PROBE_INTERVAL = 20

export const runFailover = async ({ context, random, rounds, env }: Part): Promise<Report> => {
  const report = new Report('Failover: the primary is killed or falls silent, its standby is promoted')
  const journal = new Journal()
  const servers = await Replicated.start(context)
  const pair = await startPair(context, { ...env, DATABASE_URL: servers.url })
  const client = new PairClient(pair, journal, random)
  const [probe] = await createRevocables(pair[0], 1, 'probe')
  if (probe === undefined) throw new Error('there is no user to probe with')
  const load = startFailoverLoad(client, pair, journal, random)
  const failovers = Math.ceil(rounds * FAILOVERS)
  const restored: number[] = []
  const late: string[] = []
  const disruptions: Span[] = []

  /** Milliseconds from the promotion until an instance acknowledges a write. */
  const restore = async (instance: Instance, promotedAt: number): Promise<number> => {
    while (performance.now() < promotedAt + GIVE_UP) {
      // Another name each time: a change that changes nothing writes nothing.
      const name = `${instance.name} ${performance.now()}`
      const response = await client.attempt(instance, calls.rename(probe.token, name))
      if (response?.status === 200) return response.respondedAt - promotedAt
      await sleep(PROBE_INTERVAL)
    }
    return Number.POSITIVE_INFINITY
  }

  for (let number = 0; number < failovers; number += 1) {
    await sleep(random.integer(LOAD.min, LOAD.max))
    const loss = LOSSES[number % LOSSES.length] as Loss
    const from = performance.now()
    const promotedAt = await servers.failOver(loss)
    const times = await Promise.all(pair.map(instance => restore(instance, promotedAt)))
    disruptions.push({ from, to: performance.now() })
    restored.push(...times)
    for (const [index, time] of times.entries())
      if (time > RESTORED)
        late.push(
          `failover ${number + 1} (${loss}): ${pair[index]?.name} takes writes after ${milliseconds(time)}`,
        )
    await servers.rebuild()
  }
  await sleep(LOAD.min)
  await load.stop()

  const lost = await lossesOf(load, client, pair, servers.primaryUrl)
  const stopped = await Promise.all(pair.map(instance => instance.stop('SIGTERM')))
  client.close()

  const isUnfounded = ({ sentAt, respondedAt }: TimedResponse): boolean =>
    !disruptions.some(({ from, to }) => meets({ from, to: to + RESTORED }, sentAt, respondedAt))
  const unfounded = client.unavailable.filter(isUnfounded)
  report.figure('failovers', failovers)
  report.figure('responses · of them 503', `${journal.responses} · ${client.unavailable.length}`)
  report.figure(
    'acknowledged: sign-ups · renames sent · revocations',
    `${load.holders.length} · ${load.renames} · ${load.holders.filter(({ revoked }) => revoked !== null).length}`,
  )
  report.figure('responses to revoked tokens', load.watched)
  report.figure('slowest response', milliseconds(journal.slowest))
  report.figure('writes again after the promotion: p50 / p99 / max', spread(restored))
  report.failures('acknowledged writes lost', lost)
  report.failures('revoked tokens taken', load.taken)
  report.failures(`not restored within ${milliseconds(RESTORED)}`, late)
  report.failures('wrong responses', journal.failures)
  report.failures(
    '503 long after a failover',
    unfounded.map(({ text }) => text),
  )
  report.expect(
    stopped.every(code => code === 0),
    `after all that, SIGTERM ended them with ${stopped}`,
  )
  report.expect(load.holders.length > failovers, 'hardly any account was acknowledged')
  return report
}
