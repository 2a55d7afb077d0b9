/** A user is disabled, or an API key revoked, on A: B, which has cached the token, accepts no request after the acknowledgement. */
import { Agent } from 'node:http'
import { calls, send } from './http.ts'
import { startPair } from './instance.ts'
import type { Part } from './part.ts'
import { milliseconds, Report, spread } from './report.ts'
import { Journal } from './response-checks.ts'
import { createRevocables, type Revocable } from './revocation-users.ts'

/** Half of them with a session, half with an API key. */
const USERS = 320
/** Revocations at a time. */
const CONCURRENCY = 4

/** Responses before the revocation, after which B has certainly cached the token. */
const WARM = 5

/** Milliseconds after the acknowledgement for which B is checked. */
const AFTERWARDS = 100

export const runRevocation = async ({ context, env }: Part): Promise<Report> => {
  const report = new Report('Revocation on A, used on B')
  const journal = new Journal()
  const [a, b] = await startPair(context, env)
  const users = await createRevocables(a, USERS, 'revoked')
  const latencies: Record<Revocable['kind'], number[]> = { session: [], 'API key': [] }
  const agent = new Agent({ keepAlive: true })
  const taken: string[] = []
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
  const revoke = async ({ revocation, status, kind }: Revocable): Promise<number> => {
    const response = await send(a.url, revocation, agent)
    journal.response(a.name, revocation, response)
    if (response.status !== status) journal.failure(a.name, revocation, `${response.status} ${response.text}`)
    latencies[kind].push(response.respondedAt - response.sentAt)
    return response.respondedAt
  }
  /** When the token of each user was acknowledged as revoked, or rejected for the first time if that was earlier. */
  const ended = new Map<Revocable, number>()
  const check = async (instance: typeof a, user: Revocable): Promise<void> => {
    const { status, sentAt, respondedAt } = await ask(instance, user.token)
    const endedAt = ended.get(user) ?? Number.POSITIVE_INFINITY
    if (status === 401) ended.set(user, Math.min(endedAt, respondedAt))
    else if (status !== 200) report.failure(`${user.email}: ${instance.name} returned ${status}`)
    else if (sentAt > endedAt)
      taken.push(`${user.email}: ${instance.name}, ${milliseconds(sentAt - endedAt)} later`)
  }
  const measure = async (user: Revocable): Promise<void> => {
    await warm(user.token)
    let end = Number.POSITIVE_INFINITY
    const use = async (): Promise<void> => {
      while (performance.now() < end) await check(b, user)
    }
    const used = use()
    const acknowledgedAt = await revoke(user)
    ended.set(user, Math.min(ended.get(user) ?? acknowledgedAt, acknowledgedAt))
    end = acknowledgedAt + AFTERWARDS
    // At once: the loop may wait for the response to an earlier request.
    await Promise.all([check(a, user), check(b, user), used])
  }

  const rest = users.values()
  const worker = async (): Promise<void> => {
    for (const user of rest) await measure(user)
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, worker))
  for (const user of users) await Promise.all([check(a, user), check(b, user)])
  agent.destroy()

  report.figure('users', users.length)
  report.figure('questions', polls)
  for (const [kind, ofKind] of Object.entries(latencies))
    report.figure(`${kind}, latency of the revocation: p50 / p99 / max`, spread(ofKind))
  report.failures('wrong responses', journal.failures)
  report.failures('accepted after the acknowledgement or a rejection', taken)
  return report
}
