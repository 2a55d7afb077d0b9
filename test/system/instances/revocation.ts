/** A user is disabled, or an API key revoked, on A: how long does B accept the cached token? */
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { calls, send } from './http.ts'
import { startPair } from './instance.ts'
import type { Part } from './part.ts'
import { milliseconds, quantile, Report, spread } from './report.ts'
import { Journal } from './response-checks.ts'
import { createRevocables, type Revocable } from './revocation-users.ts'

/** Half of them with a session, half with an API key. */
const USERS = 320
/** Revocations at a time. */
const CONCURRENCY = 4

/** Responses before the revocation, after which B has certainly cached the token. */
const WARM = 5

/** Milliseconds from A's acknowledgement to B's first 401, and of checks after that. */
const LIMIT = { p99: 100, max: 1_000 }
const AFTERWARDS = 100

/** Milliseconds after which a token counts as accepted for good. */
const GIVE_UP = 5_000

export const runRevocation = async ({ context, env }: Part): Promise<Report> => {
  const report = new Report('Revocation on A, used on B')
  const journal = new Journal()
  const [a, b] = await startPair(context, env)
  const users = await createRevocables(a, USERS, 'revoked')
  const delays: Record<Revocable['kind'], number[]> = { session: [], 'API key': [] }
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
      if (status !== 200)
        journal.failure(b.name, calls.account(token), `${status} before anything was revoked`)
    }
  }
  const revoke = async ({ revocation, status }: Revocable): Promise<number> => {
    const response = await send(a.url, revocation, agent)
    journal.response(a.name, revocation, response)
    if (response.status !== status) journal.failure(a.name, revocation, `${response.status} ${response.text}`)
    return response.respondedAt
  }

  /** Polls B until some time after its first 401. @returns its timestamp; `null` when none came. */
  const rejection = async ({ token, email }: Revocable): Promise<number | null> => {
    const giveUp = performance.now() + GIVE_UP
    let first: number | null = null
    while (performance.now() < (first === null ? giveUp : first + AFTERWARDS)) {
      const { status, respondedAt } = await ask(b, token)
      if (status === 401) first ??= respondedAt
      else if (status !== 200) report.failure(`${email}: B returned ${status}`)
      else if (first !== null) report.failure(`${email}: B accepts the token after it has rejected it`)
    }
    return first
  }
  const measure = async (user: Revocable): Promise<void> => {
    await warm(user.token)
    const [acknowledged, first] = await Promise.all([revoke(user), rejection(user)])
    if (first === null)
      report.failure(`${user.email}: B takes the token still, ${milliseconds(GIVE_UP)} later`)
    else delays[user.kind].push(Math.max(0, first - acknowledged))
    const { status } = await ask(a, user.token)
    if (status !== 401) report.failure(`${user.email}: A itself returned ${status} after its acknowledgement`)
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
  for (const [kind, ofKind] of Object.entries(delays)) {
    report.figure(`${kind}, until the first 401: p50 / p99 / max`, spread(ofKind))
    report.expect(quantile(ofKind, 0.99) <= LIMIT.p99, `${kind}: p99 is over ${milliseconds(LIMIT.p99)}`)
    report.expect(quantile(ofKind, 1) <= LIMIT.max, `${kind}: the maximum is over ${milliseconds(LIMIT.max)}`)
  }
  report.failures('wrong responses', journal.failures)
  report.figure('taken again in the end', taken)
  report.expect(taken === 0, `${taken} revoked tokens are taken again`)
  return report
}
