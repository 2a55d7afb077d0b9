/** Revocation on A while B's database connections are cut or stalled at random (docs/design.md, "Storage"). */
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { startDisruptions } from './database-disruptions.ts'
import { type Call, calls, type TimedResponse } from './http.ts'
import { freePort, Instance } from './instance.ts'
import type { Part } from './part.ts'
import { milliseconds, Report } from './report.ts'
import { Journal, sendRecorded } from './response-checks.ts'
import { createRevocables, type Revocable } from './revocation-users.ts'
import { startTcpProxy } from './stalling-proxy.ts'

const USERS = 160
/** Milliseconds between the starts of two users, and of requests before the revocation. */
const PACE = 150
const WARM = { min: 300, max: 900 }

/** Milliseconds between two requests of a user, which do not wait for each other. */
const INTERVAL = 60

/** Milliseconds after A's acknowledgement until which B is checked. */
const AFTERWARDS = 2_500

/** Milliseconds within which B is ready after the disruptions. */
const RECOVERY = 5_000

export const runRevocationCut = async ({ context, random, databaseUrl, env }: Part): Promise<Report> => {
  const report = new Report('Revocation while B loses its database')
  const journal = new Journal()
  const { hostname: host, port } = new URL(databaseUrl)
  const proxy = await startTcpProxy(context, { host, port: Number(port) })
  const behindProxy = new URL(databaseUrl)
  behindProxy.port = String(proxy.port)
  const a = new Instance(context, 'A', await freePort(), env)
  const b = new Instance(context, 'B', await freePort(), { ...env, DATABASE_URL: behindProxy.href })
  await a.start()
  await b.start()
  const users = await createRevocables(a, USERS, 'cut')
  const agent = new Agent({ keepAlive: true })

  const ask = (instance: Instance, call: Call) => sendRecorded(instance, call, agent, journal)

  const disruption = startDisruptions(proxy, random)
  let duringDisruption = 0
  let latest = Number.NEGATIVE_INFINITY
  const revokeInFlight = async (user: Revocable): Promise<void> => {
    const begin = performance.now()
    const responses: Promise<TimedResponse | null>[] = []
    const warm = random.integer(WARM.min, WARM.max)
    let revokedAt = Number.POSITIVE_INFINITY
    let acknowledgedAt = Number.POSITIVE_INFINITY
    const revoke = async (): Promise<void> => {
      revokedAt = performance.now()
      const response = await ask(a, user.revocation)
      if (response?.status !== user.status)
        report.failure(`${user.email}: A returned ${response?.status} to the revocation`)
      acknowledgedAt = response?.respondedAt ?? performance.now()
      responses.push(ask(b, calls.account(user.token)))
      if (disruption.isNear(acknowledgedAt)) duringDisruption += 1
    }
    while (performance.now() < acknowledgedAt + AFTERWARDS) {
      responses.push(ask(b, calls.account(user.token)))
      if (revokedAt === Number.POSITIVE_INFINITY && performance.now() > begin + warm) void revoke()
      await sleep(INTERVAL)
    }
    check(user, await Promise.all(responses), revokedAt, acknowledgedAt)
  }

  const check = (
    { email }: Revocable,
    responses: readonly (TimedResponse | null)[],
    revokedAt: number,
    acknowledgedAt: number,
  ): void => {
    const responded = responses.filter(response => response !== null)
    const rejected = responded.filter(({ status }) => status === 401)
    const firstRejection = Math.min(...rejected.map(({ respondedAt }) => respondedAt))
    for (const { status, sentAt, respondedAt } of responded) {
      const after = `${milliseconds(sentAt - acknowledgedAt)} to ${milliseconds(respondedAt - acknowledgedAt)}`
      if (![200, 401, 503].includes(status)) report.failure(`${email}: B returned ${status}`)
      if (status === 401 && respondedAt < revokedAt)
        report.failure(`${email}: B returned 401 before the revocation`)
      if (status !== 200) continue
      latest = Math.max(latest, sentAt - acknowledgedAt)
      if (sentAt > acknowledgedAt)
        report.failure(`${email}: B took the token ${after} after the acknowledgement`)
      if (sentAt > firstRejection) report.failure(`${email}: B accepted the token after it had rejected it`)
    }
  }

  const inFlight: Promise<void>[] = []
  for (const user of users.slice(0, -1)) {
    inFlight.push(revokeInFlight(user))
    await sleep(PACE)
  }
  await Promise.all(inFlight)
  await disruption.stop()

  const healed = performance.now()
  const untouched = users.at(-1) as Revocable
  let status: number | undefined
  while (status !== 200 && performance.now() < healed + RECOVERY) {
    await sleep(INTERVAL)
    status = (await ask(b, calls.ready()))?.status
  }
  report.figure('B ready after the disruptions in', milliseconds(performance.now() - healed))
  report.expect(status === 200, `B is not ready ${milliseconds(RECOVERY)} after it was left alone`)
  report.expect(
    (await ask(b, calls.account(untouched.token)))?.status === 200,
    'B accepts tokens that were not revoked',
  )
  let taken = 0
  for (const { token } of users.slice(0, -1))
    if ((await ask(b, calls.account(token)))?.status !== 401) taken += 1
  agent.destroy()

  report.figure('users · revoked during a disruption', `${users.length} · ${duringDisruption}`)
  report.figure('cuts · stalls', `${disruption.cuts()} · ${disruption.holds()}`)
  report.figure('responses: 200 · 401 · 503', [200, 401, 503].map(code => journal.count(code)).join(' · '))
  report.figure('slowest response', milliseconds(journal.slowest))
  report.figure('last accepted request, sent after the acknowledgement', milliseconds(latest))
  report.failures('wrong responses', journal.failures)
  report.figure('taken in the end', taken)
  report.expect(taken === 0, `${taken} revoked tokens are taken again`)
  return report
}
