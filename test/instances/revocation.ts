/** A user is disabled on A: how long does B, which remembers their token, still take it? */
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { calls, send } from './http.ts'
import { startPair } from './instance.ts'
import type { Part } from './part.ts'
import { milliseconds, quantile, Report, spread } from './report.ts'
import { Journal } from './response-checks.ts'
import { createUsers, type Revocable } from './revocation-users.ts'

const USERS = 240
/** Users who are revoked at once. */
const CONCURRENCY = 4

/** Answers before the revocation, after which B is certain to remember the token. */
const WARM = 5

/** Milliseconds from A's acknowledgement to B's first 401, and that its tokens are looked at after that. */
const LIMIT = { p99: 100, max: 1_000 }
const AFTERWARDS = 100

/** Milliseconds of asking, after which a token is taken for good. */
const GIVE_UP = 5_000

export const runRevocation = async ({ context, env }: Part): Promise<Report> => {
  const report = new Report('Revocation: disabled on A, used on B')
  const journal = new Journal()
  const [a, b] = await startPair(context, env)
  const users = await createUsers(a, USERS, 'revoked')
  const delays: number[] = []
  const agent = new Agent({ keepAlive: true })
  let polls = 0

  const ask = async (instance: typeof a, token: string) => {
    const call = calls.account(token)
    const response = await send(instance.url, call, agent)
    journal.response(instance.name, call, response)
    polls += 1
    return response
  }
  const warm = async (token: string): Promise<void> => {
    for (let number = 0; number < WARM; number += 1) {
      const { status } = await ask(b, token)
      if (status !== 200) journal.fault(b.name, calls.account(token), `${status} before anything was revoked`)
    }
  }
  const revoke = async ({ id }: Revocable): Promise<number> => {
    const call = calls.disable(id)
    const response = await send(a.url, call, agent)
    journal.response(a.name, call, response)
    if (response.status !== 200) journal.fault(a.name, call, `${response.status} ${response.text}`)
    return response.respondedAt
  }

  /** Asks B without a pause, until a while after its first 401. @returns its timestamp; `null` when none came. */
  const rejection = async ({ token, email }: Revocable): Promise<number | null> => {
    const giveUp = performance.now() + GIVE_UP
    let first: number | null = null
    while (performance.now() < (first === null ? giveUp : first + AFTERWARDS)) {
      const { status, respondedAt } = await ask(b, token)
      if (status === 401) first ??= respondedAt
      else if (status !== 200) report.fault(`${email}: B answered ${status}`)
      else if (first !== null) report.fault(`${email}: B takes the token after it has refused it`)
    }
    return first
  }
  const measure = async (user: Revocable): Promise<void> => {
    await warm(user.token)
    const [acknowledged, first] = await Promise.all([revoke(user), rejection(user)])
    if (first === null) report.fault(`${user.email}: B takes the token still, ${milliseconds(GIVE_UP)} later`)
    else delays.push(Math.max(0, first - acknowledged))
    const { status } = await ask(a, user.token)
    if (status !== 401) report.fault(`${user.email}: A itself answered ${status} after its acknowledgement`)
  }

  const rest = users.values()
  const worker = async (): Promise<void> => {
    for (const user of rest) await measure(user)
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, worker))
  await sleep(LIMIT.max)
  let taken = 0
  for (const { token } of users)
    for (const instance of [a, b]) if ((await ask(instance, token)).status !== 401) taken += 1
  agent.destroy()

  report.figure('users', users.length)
  report.figure('questions', polls)
  report.figure('until the first 401: p50 / p99 / max', spread(delays))
  report.expect(quantile(delays, 0.99) <= LIMIT.p99, `p99 is over ${milliseconds(LIMIT.p99)}`)
  report.expect(quantile(delays, 1) <= LIMIT.max, `the maximum is over ${milliseconds(LIMIT.max)}`)
  report.faults('wrong answers', journal.faults)
  report.figure('taken again in the end', taken)
  report.expect(taken === 0, `${taken} revoked tokens are taken again`)
  return report
}
