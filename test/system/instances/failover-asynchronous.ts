/**
 * Failovers without a synchronous standby. The last writes of the lost primary may be lost with it, revocations among them
 * (docs/scaling.md, "Failover"), so the check asserts nothing about those. It asserts that a revocation holds on both instances once the
 * promoted server has acknowledged it, although both had cached the token on the lost primary a moment before. That one is fenced: it is
 * killed, or frozen until it is killed.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { calls } from './http.ts'
import { type Instance, startPair } from './instance.ts'
import type { Part } from './part.ts'
import { type Loss, Replicated } from './replicated.ts'
import { milliseconds, Report, spread } from './report.ts'
import { Journal } from './response-checks.ts'
import { PairClient } from './retrying-client.ts'
import { createRevocables, type Revocable } from './revocation-users.ts'

/** Failovers per round of the run: 20 for its 8. */
const FAILOVERS = 2.5

const LOSSES: readonly Loss[] = ['killed', 'silent']

/** Tokens of each failover, and revocations at a time. */
const TOKENS = 24
const CONCURRENCY = 6

/** Milliseconds between two requests of a token to an instance, before its revocation. */
const INTERVAL = 20

export const runAsynchronousFailover = async ({ context, random, rounds, env }: Part): Promise<Report> => {
  const report = new Report(
    'Failover without a synchronous standby: revocations that the promoted server acknowledges',
  )
  const journal = new Journal()
  const servers = await Replicated.start(context, 'asynchronous')
  const pair = await startPair(context, { ...env, DATABASE_URL: servers.url })
  const client = new PairClient(pair, journal, random)
  const failovers = Math.ceil(rounds * FAILOVERS)
  const accepted: string[] = []
  const afterPromotion: number[] = []
  let afterwards = 0

  /** Uses tokens on both instances until the first of them is revoked. */
  const keepCached = async (tokens: readonly Revocable[], isOver: () => boolean): Promise<void> => {
    const use = async (instance: Instance, { token }: Revocable): Promise<void> => {
      while (!isOver()) {
        await client.attempt(instance, calls.account(token))
        await sleep(INTERVAL)
      }
    }
    await Promise.all(tokens.flatMap(token => pair.map(instance => use(instance, token))))
  }

  const revoke = async (
    { email, token, revocation, status }: Revocable,
    promotedAt: number,
  ): Promise<void> => {
    const { response } = await client.persist(revocation)
    // Another one follows a 503: the first attempt has revoked it, and nobody waited.
    if (response?.status !== status) return
    afterPromotion.push(response.respondedAt - promotedAt)
    const checks = pair.map(async instance => {
      const used = await client.attempt(instance, calls.account(token))
      afterwards += 1
      if (used?.status === 200)
        accepted.push(
          `${email}: ${instance.name} accepted it ${milliseconds(used.sentAt - response.respondedAt)} after the acknowledgement`,
        )
    })
    await Promise.all(checks)
  }

  for (let number = 0; number < failovers; number += 1) {
    const tokens = await createRevocables(pair[0], TOKENS, `failover-${number}`)
    await servers.caughtUp()
    let isOver = false
    const cached = keepCached(tokens, () => isOver)
    await sleep(5 * INTERVAL)
    const promotedAt = await servers.failOver(LOSSES[number % LOSSES.length] as Loss)
    isOver = true
    const rest = tokens.values()
    const work = async (): Promise<void> => {
      for (const token of rest) await revoke(token, promotedAt)
    }
    await Promise.all([cached, ...Array.from({ length: CONCURRENCY }, work)])
    await servers.rebuild()
  }
  await Promise.all(pair.map(instance => instance.stop('SIGTERM')))
  client.close()

  report.figure('failovers', failovers)
  report.figure(
    'revocations · requests after the acknowledgement',
    `${afterPromotion.length} · ${afterwards}`,
  )
  report.figure('acknowledged after the promotion: p50 / p99 / max', spread(afterPromotion))
  report.figure('responses · of them 503', `${journal.responses} · ${client.unavailable.length}`)
  report.failures('accepted after an acknowledgement', accepted)
  report.failures('wrong responses', journal.failures)
  report.expect(afterPromotion.length > failovers, 'hardly any revocation was acknowledged')
  return report
}
