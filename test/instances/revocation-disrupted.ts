/** The same while B's connections to the database are cut or stand still at random: no luck is needed (DESIGN §7). */
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { startTrouble } from './database-disruptions.ts'
import { type Call, calls, send, type TimedResponse } from './http.ts'
import { freePort, Instance } from './instance.ts'
import type { Part } from './part.ts'
import { milliseconds, Report } from './report.ts'
import { asLost, Journal } from './response-checks.ts'
import { createUsers, type Revocable } from './revocation-users.ts'
import { startTcpProxy } from './tcp-proxy.ts'

const USERS = 160
/** Milliseconds between two users' beginnings, and of asking before the revocation. */
const PACE = 150
const WARM = { min: 300, max: 900 }

/** Milliseconds between two questions about a user, which are asked whether or not the last one is answered. */
const INTERVAL = 60

/** Milliseconds after A's acknowledgement from which B must not be asked in vain, and until which it is asked. */
const BOUND = 1_000
const AFTERWARDS = 2_500

/** Milliseconds that an answer may be on its way, which was asked for before the bound. */
const ON_ITS_WAY = 1_000

/** Milliseconds within which B is ready once it is left alone. */
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
  const users = await createUsers(a, USERS, 'cut')
  const agent = new Agent({ keepAlive: true })

  const ask = async (instance: Instance, call: Call): Promise<TimedResponse | null> => {
    try {
      const response = await send(instance.url, call, agent)
      journal.response(instance.name, call, response)
      return response
    } catch (error) {
      journal.fault(instance.name, call, `no answer: ${asLost(error).message}`)
      return null
    }
  }

  const trouble = startTrouble(proxy, random)
  let amidTrouble = 0
  let latest = 0
  const revokeInFlight = async (user: Revocable): Promise<void> => {
    const begin = performance.now()
    const responses: Promise<TimedResponse | null>[] = []
    const warm = random.integer(WARM.min, WARM.max)
    let revokedAt = Number.POSITIVE_INFINITY
    let acknowledgedAt = Number.POSITIVE_INFINITY
    const revoke = async (): Promise<void> => {
      revokedAt = performance.now()
      const response = await ask(a, calls.disable(user.id))
      if (response?.status !== 200)
        report.fault(`${user.email}: A answered ${response?.status} to the revocation`)
      acknowledgedAt = performance.now()
      if (trouble.isNear(acknowledgedAt)) amidTrouble += 1
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
    const answered = responses.filter(response => response !== null)
    const rejected = answered.filter(({ status }) => status === 401)
    const firstRejection = Math.min(...rejected.map(({ respondedAt }) => respondedAt))
    for (const { status, sentAt, respondedAt } of answered) {
      const after = `${milliseconds(sentAt - acknowledgedAt)} to ${milliseconds(respondedAt - acknowledgedAt)}`
      if (![200, 401, 503].includes(status)) report.fault(`${email}: B answered ${status}`)
      if (status === 401 && respondedAt < revokedAt)
        report.fault(`${email}: B answered 401 before the revocation`)
      if (status !== 200) continue
      latest = Math.max(latest, respondedAt - acknowledgedAt)
      if (sentAt > acknowledgedAt + BOUND || respondedAt > acknowledgedAt + BOUND + ON_ITS_WAY)
        report.fault(`${email}: B took the token ${after} after the acknowledgement`)
      if (sentAt > firstRejection) report.fault(`${email}: B took the token after it had refused it`)
    }
  }

  const inFlight: Promise<void>[] = []
  for (const user of users.slice(0, -1)) {
    inFlight.push(revokeInFlight(user))
    await sleep(PACE)
  }
  await Promise.all(inFlight)
  await trouble.stop()

  const healed = performance.now()
  const untouched = users.at(-1) as Revocable
  let status: number | undefined
  while (status !== 200 && performance.now() < healed + RECOVERY) {
    await sleep(INTERVAL)
    status = (await ask(b, calls.ready()))?.status
  }
  report.figure('B ready, left alone, after', milliseconds(performance.now() - healed))
  report.expect(status === 200, `B is not ready ${milliseconds(RECOVERY)} after it was left alone`)
  report.expect(
    (await ask(b, calls.account(untouched.token)))?.status === 200,
    'B does not take a token that nobody revoked',
  )
  let taken = 0
  for (const { token } of users.slice(0, -1))
    if ((await ask(b, calls.account(token)))?.status !== 401) taken += 1
  agent.destroy()

  report.figure('users · revoked amid trouble', `${users.length} · ${amidTrouble}`)
  report.figure('cuts · standstills', `${trouble.cuts()} · ${trouble.holds()}`)
  report.figure('answers: 200 · 401 · 503', [200, 401, 503].map(code => journal.count(code)).join(' · '))
  report.figure('slowest answer', milliseconds(journal.slowest))
  report.figure('last 200 after the acknowledgement', milliseconds(latest))
  report.faults('wrong answers', journal.faults)
  report.figure('taken in the end', taken)
  report.expect(taken === 0, `${taken} revoked tokens are taken again`)
  return report
}
