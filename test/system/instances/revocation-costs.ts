/**
 * What a revocation costs with 1, 3 and 16 processes on one PostgreSQL: its latency, with one process frozen too, how many there are in a
 * second, and the statements that it runs. One process makes all revocations; another beside it makes them with `REVOCATION_WAIT=off`.
 */
import { Agent } from 'node:http'
import { loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { startPostgres } from '../../../scripts/postgres-server.ts'
import { ADMIN_KEY } from '../../support/build.ts'
import { query } from '../../support/postgres.ts'
import { bodyOf, type Call, calls, send, type TimedResponse } from './http.ts'
import { freePort, Instance } from './instance.ts'
import type { Part } from './part.ts'
import { milliseconds, quantile, Report } from './report.ts'
import { PASSWORD } from './revocation-users.ts'

const PROCESSES = [1, 3, 16]

/** Revocations of each kind in a round, one after the other. The rounds with and without the wait take turns. */
const SAMPLES = 20

/** Sign-outs for the throughput, and requests at a time. */
const SIGN_OUTS = 480
const CONCURRENCY = 32

/** How often a process is frozen. */
const FREEZES = 6

/** Milliseconds after which a process that goes on has a lease again, and of an idle second for the statements of the background. */
const REST = 1_000

const admin = { 'x-admin-key': ADMIN_KEY }

/** Statements by what they are for; everything else is of the change itself. Renewals run without revocations too. */
const PURPOSE = `CASE WHEN query LIKE 'INSERT INTO process_leases%' THEN 'renewals'
  WHEN query LIKE 'UPDATE process_leases%' THEN 'confirmations'
  WHEN query LIKE 'SELECT id, confirmed, renewals FROM process_leases%' THEN 'reads of leases'
  WHEN query LIKE 'NOTIFY%' THEN 'notifications' ELSE 'other' END`

export const runRevocationCosts = async ({ context, rounds }: Part): Promise<Report> => {
  const report = new Report('What a revocation costs')
  const postgres = await startPostgres({
    durable: true,
    settings: { shared_preload_libraries: 'pg_stat_statements' },
  })
  context.teardown(() => postgres.stop())
  await query(postgres.url, 'CREATE EXTENSION pg_stat_statements')
  const agent = new Agent({ keepAlive: true })
  context.teardown(() => agent.destroy())
  const start = async (env: Record<string, string> = {}): Promise<Instance> => {
    const settings = { DATABASE_URL: postgres.url, DATABASE_CONNECTIONS: '8', ...env }
    const instance = new Instance(context, 'instance', await freePort(), settings)
    await instance.start()
    return instance
  }
  const ask = async ({ url }: Instance, call: Call, expected: number): Promise<TimedResponse> => {
    const response = await send(url, call, agent)
    if (response.status !== expected) throw new Error(`${call.path}: ${response.status} ${response.text}`)
    return response
  }
  const waiting = await start()
  const created = bodyOf(await ask(waiting, calls.signUp('ada@example.com', PASSWORD), 201))
  const { id } = created.user as { id: string }
  const signIn = async (): Promise<string> => {
    const call: Call = { method: 'POST', path: `/admin/users/${id}/impersonate`, headers: admin }
    return String(bodyOf(await ask(waiting, call, 201)).accessToken)
  }
  const change = (body: object): Call => ({ method: 'PUT', path: `/admin/users/${id}`, headers: admin, body })
  const lasted = ({ sentAt, respondedAt }: TimedResponse): number => respondedAt - sentAt

  /** Each revokes once. @returns the milliseconds. */
  const kinds: Readonly<Record<string, (writer: Instance) => Promise<number>>> = {
    'sign-out': async writer => {
      const token = await signIn()
      return lasted(await ask(writer, calls.signOut(token), 204))
    },
    disable: async writer => {
      const time = lasted(await ask(writer, change({ disabled: true }), 200))
      await ask(writer, change({ disabled: false }), 200)
      return time
    },
    roles: async writer => {
      const time = lasted(await ask(writer, change({ roles: ['editor'] }), 200))
      await ask(writer, change({ roles: [] }), 200)
      return time
    },
  }
  const signOutAll = async (writer: Instance): Promise<number> => {
    const tokens: string[] = []
    while (tokens.length < SIGN_OUTS)
      tokens.push(...(await Promise.all(Array.from({ length: CONCURRENCY }, signIn))))
    const rest = tokens.values()
    const begin = performance.now()
    const client = async (): Promise<void> => {
      for (const token of rest) await ask(writer, calls.signOut(token), 204)
    }
    await Promise.all(Array.from({ length: CONCURRENCY }, client))
    return (1_000 * tokens.length) / (performance.now() - begin)
  }
  const measure = async (writers: Readonly<Record<string, Instance>>, count: number): Promise<void> => {
    const times = new Map<string, number[]>()
    const add = (name: string, value: number) => times.set(name, [...(times.get(name) ?? []), value])
    for (let round = 0; round < rounds; round += 1)
      for (const [wait, writer] of Object.entries(writers)) {
        for (const [kind, revoke] of Object.entries(kinds))
          for (let sample = 0; sample < SAMPLES; sample += 1)
            add(`${kind}, wait ${wait}`, await revoke(writer))
        add(`sign-outs/s, wait ${wait}`, await signOutAll(writer))
      }
    for (const [name, values] of times) {
      const [low, median, high] = [0.25, 0.5, 0.75].map(part => quantile(values, part).toFixed(1))
      report.figure(`${count} processes: ${name}`, `${median} (${low} to ${high})`)
    }
  }
  const countStatements = async (count: number): Promise<void> => {
    const tokens = await Promise.all(Array.from({ length: SAMPLES }, signIn))
    await sleep(REST)
    await query(postgres.url, 'SELECT pg_stat_statements_reset()')
    for (const token of tokens) await ask(waiting, calls.signOut(token), 204)
    const text = `SELECT ${PURPOSE} AS purpose, sum(calls)::float AS calls FROM pg_stat_statements GROUP BY 1 ORDER BY 1`
    const rows = await query(postgres.url, text)
    const perSignOut = rows.map(({ purpose, calls }) => `${(Number(calls) / SAMPLES).toFixed(1)} ${purpose}`)
    report.figure(`${count} processes: statements for each sign-out`, perSignOut.join(', '))
  }
  const freeze = async (instance: Instance): Promise<void> => {
    const first: number[] = []
    const next: number[] = []
    for (let number = 0; number < FREEZES; number += 1) {
      instance.signal('SIGSTOP')
      for (const values of [first, next, next])
        values.push((await kinds['sign-out']?.(waiting)) ?? Number.NaN)
      instance.signal('SIGCONT')
      await sleep(REST)
    }
    report.figure('3 processes, one frozen: first sign-out', milliseconds(quantile(first, 0.5)))
    report.figure('3 processes, one frozen: further ones', milliseconds(quantile(next, 0.5)))
  }

  // Compiles the code that it runs.
  await signOutAll(waiting)
  const others: Instance[] = []
  for (const count of PROCESSES) {
    while (others.length + 1 < count)
      others.push(await start(others.length === 0 ? { REVOCATION_WAIT: 'off' } : {}))
    const [withoutWait, last] = [others[0], others.at(-1)]
    await sleep(REST)
    report.figure(`${count} processes: load of the machine before`, loadavg()[0]?.toFixed(1) ?? '')
    await measure({ on: waiting, ...(withoutWait && { off: withoutWait }) }, count)
    await countStatements(count)
    if (count === 3 && last !== undefined) await freeze(last)
  }
  return report
}
