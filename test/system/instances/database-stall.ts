/**
 * The database's connections stall for longer than the service waits: every request gets a response in time, and the service
 * recovers or stops.
 */
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { bodyOf, type Call, calls, RESPONSE_LIMIT, send, type TimedResponse } from './http.ts'
import { freePort, Instance } from './instance.ts'
import type { Part } from './part.ts'
import { milliseconds, Report } from './report.ts'
import { Journal, sendRecorded } from './response-checks.ts'
import { startTcpProxy } from './stalling-proxy.ts'

const EMAIL = 'stall@example.com'
const PASSWORD = 'a pass phrase that waits'

/** Milliseconds of the stall: longer than any request may wait. */
const STALL = RESPONSE_LIMIT + 4_000

/** Rounds of requests during the stall, and requests of each kind per round. */
const WAVES = 16
const WAVE = 4

/** Milliseconds after which nothing is served from the cache. */
const CACHE_TIME = 1_000

/**
 * Milliseconds until the service is ready after the stall, with all waiting requests done, and until it has stopped during
 * one.
 */
const RECOVERY = 5_000
const STOP_LIMIT = 20_000

export const runDatabaseStall = async ({ context, databaseUrl, env }: Part): Promise<Report> => {
  const report = new Report('Database stall')
  const journal = new Journal()
  const { hostname: host, port } = new URL(databaseUrl)
  const proxy = await startTcpProxy(context, { host, port: Number(port) })
  const behindProxy = new URL(databaseUrl)
  behindProxy.port = String(proxy.port)
  const instance = new Instance(context, 'B', await freePort(), { ...env, DATABASE_URL: behindProxy.href })
  await instance.start()
  const agent = new Agent({ keepAlive: true })

  const ask = (call: Call) => sendRecorded(instance, call, agent, journal)
  const signedUp = await send(instance.url, calls.signUp(EMAIL, PASSWORD), agent)
  const token = bodyOf(signedUp).accessToken as string
  const emails: string[] = []
  const newSignUp = (): Call => {
    emails.push(`stall-${emails.length}@example.com`)
    return calls.signUp(emails.at(-1) ?? '', PASSWORD)
  }
  /** Each kind of request that needs the database, and one that does not. */
  const wave = (): Promise<TimedResponse | null>[] =>
    Array.from({ length: WAVE }, () => [
      ask(calls.account(token)),
      ask(calls.rename(token, 'Waiting')),
      ask(calls.signIn(EMAIL, PASSWORD)),
      ask(newSignUp()),
      ask(calls.list()),
      ask(calls.ready()),
    ]).flat()
  const health: Call = { method: 'GET', path: '/health' }

  await Promise.all(wave())
  const begin = performance.now()
  proxy.hold()
  const waiting: Promise<TimedResponse | null>[] = []
  for (let number = 0; number < WAVES; number += 1) {
    waiting.push(...wave())
    report.expect((await ask(health))?.status === 200, '/health is not 200')
    await sleep(STALL / WAVES)
  }
  const end = performance.now()
  proxy.flow()
  const responses = (await Promise.all(waiting)).filter(response => response !== null)
  const amid = responses.filter(({ sentAt, respondedAt }) => sentAt > begin + CACHE_TIME && respondedAt < end)
  report.figure('requests · responses meanwhile', `${waiting.length} · ${amid.length}`)
  report.figure('slowest response', milliseconds(journal.slowest))
  report.expect(amid.length > 0, 'there was no response during the stall')
  const wrong = amid.filter(({ status }) => status !== 503)
  report.expect(wrong.length === 0, `responses during the stall: ${wrong.map(({ status }) => status)}`)

  let ready: TimedResponse | null = null
  const limit = performance.now() + RECOVERY
  while (ready?.status !== 200 && performance.now() < limit) {
    ready = await ask(calls.ready())
    await sleep(20)
  }
  report.expect(ready?.status === 200, 'it is not ready again')
  for (const email of emails) {
    const repeated = await ask(calls.signUp(email, PASSWORD))
    const entered = await ask(calls.signIn(email, PASSWORD))
    if (![201, 409].includes(repeated?.status ?? 0) || entered?.status !== 200)
      report.failure(`${email}: repeated: ${repeated?.status}, then sign-in: ${entered?.status}`)
  }

  proxy.hold()
  const last = wave()
  await sleep(CACHE_TIME)
  const stopping = performance.now()
  const code = await instance.stop('SIGTERM')
  report.figure('SIGTERM meanwhile', `exit code ${code} after ${milliseconds(performance.now() - stopping)}`)
  report.expect(performance.now() - stopping < STOP_LIMIT, 'it does not stop in time')
  await Promise.all(last)
  agent.destroy()
  report.failures('wrong responses', journal.failures)
  return report
}
