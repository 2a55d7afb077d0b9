/**
 * Histories of tokens on several instances and workers that are killed, frozen, and cut from their database: no request that begins after
 * a revocation was acknowledged is accepted, by any of them (`src/storage/postgres/process-leases.ts`). The same run with
 * `REVOCATION_WAIT=off` must find such requests, else the check is worth nothing.
 */
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { ADMIN_KEY } from '../../support/build.ts'
import { newDatabaseFile } from '../../support/process.ts'
import type { Random } from '../../support/random.ts'
import { bodyOf, type Call, calls, send, type TimedResponse } from './http.ts'
import { freePort, Instance } from './instance.ts'
import type { Part } from './part.ts'
import { milliseconds, Report, spread } from './report.ts'
import { asLost, Journal } from './response-checks.ts'
import { PASSWORD } from './revocation-users.ts'
import { startTcpProxy, type TcpProxy } from './stalling-proxy.ts'
import { isAlive } from './worker-service.ts'

/** Requests per round of the run: 100,000 for its 8. */
const REQUESTS = 12_500

/** Requests accepted after an acknowledgement that end a run: it has failed. */
const FOUND = 10

const USERS = 24

/** Tokens at a time, each with a request to each instance at a time. */
const LIVES = 8

/** Milliseconds that a token is used before its revocation, and requests to each instance after the acknowledgement. */
const USED = { min: 5, max: 120 }
const AFTERWARDS = 4

/** Milliseconds between two disruptions of an instance, of a freeze or a partition, and that a killed instance is away. */
const PEACE = { min: 400, max: 2_500 }
const AWAY = { min: 50, max: 2_000 }

/** How often each disruption occurs: a start costs seconds of a core. */
const SHARES = { kills: 1, freezes: 4, partitions: 4, cuts: 2 }

type Kind = keyof typeof SHARES

/** Disrupts an instance for so many milliseconds. */
type Disruption = (away: number) => Promise<void>

/** Sets of connections to an instance with workers: each worker accepts some of them. */
const WORKER_TARGETS = 3

/** Connections to one instance. */
interface Target {
  readonly instance: Instance
  readonly agent: Agent
}

const admin = { 'x-admin-key': ADMIN_KEY }

/** A token, the request that uses it, and the call that ends it. */
interface Life {
  readonly use: Call
  readonly revocation: Call
}

interface Owner {
  readonly id: string
  readonly token: string
}

/** What opens a token, by kind. Each returns `null` where a disrupted instance did not respond. */
const openers = {
  session: async (ask: Ask, { id }: Owner): Promise<Life | null> => {
    const opened = await ask({ method: 'POST', path: `/admin/users/${id}/impersonate`, headers: admin })
    if (opened?.status !== 201) return null
    const { accessToken } = bodyOf(opened) as { accessToken: string }
    return { use: calls.account(accessToken), revocation: calls.signOut(accessToken) }
  },
  apiKey: async (ask: Ask, { token }: Owner): Promise<Life | null> => {
    const created = await ask(calls.createApiKey(token))
    if (created?.status !== 201) return null
    const { token: key, apiKey } = bodyOf(created) as { token: string; apiKey: { id: string } }
    return { use: calls.account(key), revocation: calls.revokeApiKey(token, apiKey.id) }
  },
  adminKey: async (ask: Ask): Promise<Life | null> => {
    const body = { name: 'a key', scopes: ['users:read'] }
    const created = await ask({ method: 'POST', path: '/admin/keys', headers: admin, body })
    if (created?.status !== 201) return null
    const { adminKey, key } = bodyOf(created) as { adminKey: string; key: { id: string } }
    return {
      use: { method: 'GET', path: '/admin/users?limit=1', headers: { 'x-admin-key': adminKey } },
      revocation: { method: 'DELETE', path: `/admin/keys/${key.id}`, headers: admin },
    }
  },
} as const

type Ask = (call: Call) => Promise<TimedResponse | null>

const isSuccess = (response: TimedResponse | null): boolean =>
  response !== null && response.status >= 200 && response.status < 300

interface Outcome {
  readonly requests: number
  readonly revocations: readonly number[]
  readonly violations: readonly string[]
  readonly afterwards: number
  readonly disruptions: Readonly<Record<string, number>>
}

/** Services on one database. */
interface Deployment {
  readonly name: string
  readonly engine: 'postgres' | 'sqlite'
  readonly instances: number
  readonly workers: number
}

const onPostgres = (instances: number, workers = 1): Deployment => ({
  name: `${instances} ${instances === 1 ? 'instance' : 'instances'}${workers === 1 ? '' : ` with ${workers} workers`}`,
  engine: 'postgres',
  instances,
  workers,
})

const ON_SQLITE: Deployment = { name: 'SQLite with 2 workers', engine: 'sqlite', instances: 1, workers: 2 }

/** An instance, and the proxy to its database if that is a server. */
interface Member {
  readonly instance: Instance
  readonly proxy: TcpProxy | null
}

const startMember = async (
  { context, databaseUrl, env }: Part,
  { engine, workers }: Deployment,
): Promise<Member> => {
  const start = async (url: string, proxy: TcpProxy | null): Promise<Member> => {
    const port = await freePort()
    const settings = { ...env, DATABASE_URL: url, WORKERS: String(workers) }
    const instance = new Instance(context, `instance ${port}`, port, settings)
    await instance.start()
    return { instance, proxy }
  }
  if (engine === 'sqlite') return start(`sqlite:${await newDatabaseFile(context)}`, null)
  const url = new URL(databaseUrl)
  const proxy = await startTcpProxy(context, { host: url.hostname, port: Number(url.port) })
  url.port = String(proxy.port)
  return start(url.href, proxy)
}

/** What disrupts a member for some time. Of two worker processes it is one. */
const disruptionsOf = ({ instance, proxy }: Member, random: Random): Partial<Record<Kind, Disruption>> => {
  const signal = (name: 'SIGSTOP' | 'SIGCONT' | 'SIGKILL', pid: number): void => {
    // It may have ended.
    if (isAlive(pid)) process.kill(pid, name)
  }
  const ofProcess = {
    async kills(away: number) {
      const worker = random.pick(instance.workers())
      // It is replaced.
      if (worker !== undefined) return signal('SIGKILL', worker)
      await instance.stop('SIGKILL')
      await sleep(away)
      await instance.start()
    },
    async freezes(away: number) {
      const worker = random.pick(instance.workers())
      const send = (name: 'SIGSTOP' | 'SIGCONT') =>
        worker === undefined ? instance.signal(name) : signal(name, worker)
      send('SIGSTOP')
      await sleep(away)
      send('SIGCONT')
    },
  }
  if (proxy === null) return ofProcess
  return {
    ...ofProcess,
    async partitions(away) {
      proxy.hold()
      await sleep(away)
      if (random.integer(1, 2) === 1) proxy.cut()
      proxy.flow()
    },
    cuts: async () => proxy.cut(),
  }
}

const runHistories = async (part: Part, deployment: Deployment, journal: Journal): Promise<Outcome> => {
  const { random } = part
  const limit = REQUESTS * part.rounds
  const members = await Promise.all(
    Array.from({ length: deployment.instances }, () => startMember(part, deployment)),
  )
  const targets = members.flatMap(({ instance }) =>
    Array.from({ length: deployment.workers === 1 ? 1 : WORKER_TARGETS }, () => ({
      instance,
      agent: new Agent({ keepAlive: true }),
    })),
  )
  let requests = 0
  const askOn = ({ instance, agent }: Target, call: Call) => {
    requests += 1
    return send(instance.url, call, agent).then(
      response => {
        journal.response(instance.name, call, response)
        return response
      },
      // Of an instance that is down.
      error => asLost(error) && null,
    )
  }
  const askAny: Ask = call => askOn(random.pick(targets) as Target, call)

  const owners: Owner[] = []
  for (let number = 0; number < USERS; number += 1) {
    const response = await askAny(
      calls.signUp(
        `histories-${number}-of-${members.map(({ instance }) => new URL(instance.url).port).join('-')}@example.com`,
        PASSWORD,
      ),
    )
    if (response?.status !== 201) throw new Error(`sign-up returned ${response?.status}`)
    const { user, accessToken } = bodyOf(response) as { user: { id: string }; accessToken: string }
    owners.push({ id: user.id, token: accessToken })
  }

  let running = true
  const disruptions = { kills: 0, freezes: 0, partitions: 0, cuts: 0 }
  const disrupt = async (member: Member): Promise<void> => {
    const disruption = disruptionsOf(member, random)
    const kinds = (Object.keys(disruption) as Kind[]).flatMap(kind => Array<Kind>(SHARES[kind]).fill(kind))
    while (running) {
      await sleep(random.integer(PEACE.min, PEACE.max))
      const kind = random.pick(kinds)
      if (!running || kind === undefined) return
      disruptions[kind] += 1
      await disruption[kind]?.(random.integer(AWAY.min, AWAY.max))
    }
  }

  const violations: string[] = []
  const revocations: number[] = []
  let afterwards = 0
  const live = async (): Promise<void> => {
    const owner = random.pick(owners) as Owner
    const kind = random.pick(Object.keys(openers) as (keyof typeof openers)[]) as keyof typeof openers
    const life = await openers[kind](askAny, owner)
    if (life === null) return
    let acknowledgedAt = Number.POSITIVE_INFINITY
    let isOver = false
    const check = ({ instance }: Target, response: TimedResponse | null): void => {
      if (response === null || response.sentAt <= acknowledgedAt) return
      afterwards += 1
      if (response.status === 200)
        violations.push(
          `${kind}: ${instance.name} accepted a request ${milliseconds(response.sentAt - acknowledgedAt)} after the acknowledgement`,
        )
    }
    const use = async (target: Target): Promise<void> => {
      for (let left = AFTERWARDS; !isOver && left > 0; ) {
        if (acknowledgedAt < Number.POSITIVE_INFINITY) left -= 1
        check(target, await askOn(target, life.use))
      }
    }
    const users = targets.map(use)
    await sleep(random.integer(USED.min, USED.max))
    const revoked = await askAny(life.revocation)
    if (revoked !== null && isSuccess(revoked)) {
      acknowledgedAt = revoked.respondedAt
      revocations.push(revoked.respondedAt - revoked.sentAt)
      // Requests that begin with the acknowledgement: those of the loops above may be on their way for longer.
      await Promise.all(targets.map(async target => check(target, await askOn(target, life.use))))
    } else isOver = true
    await Promise.all(users)
  }
  const work = async (): Promise<void> => {
    while (running && requests < limit && violations.length < FOUND) await live()
  }
  const disrupting = members.map(disrupt)
  await Promise.all(Array.from({ length: LIVES }, work))
  running = false
  await Promise.all(disrupting)
  await Promise.all(members.map(({ instance }) => instance.stop('SIGTERM')))
  for (const { agent } of targets) agent.destroy()
  return { requests, revocations, violations, afterwards, disruptions }
}

/** @param deployments must have no violation; the one that is `unguarded` must have some without the wait. */
const checkHistories = async (
  part: Part,
  report: Report,
  deployments: readonly Deployment[],
  unguarded: Deployment,
): Promise<Report> => {
  const journal = new Journal()
  for (const deployment of deployments) {
    const { name } = deployment
    const { requests, revocations, violations, afterwards, disruptions } = await runHistories(
      part,
      deployment,
      journal,
    )
    report.figure(`${name}: requests · after an acknowledgement`, `${requests} · ${afterwards}`)
    report.figure(
      `${name}: disruptions`,
      Object.entries(disruptions)
        .map(([kind, times]) => `${times} ${kind}`)
        .join(', '),
    )
    report.figure(`${name}: revocations: p50 / p99 / max`, `${revocations.length}: ${spread(revocations)}`)
    report.failures(`${name}: accepted after an acknowledgement`, violations)
  }
  const withoutWait = { ...part, env: { ...part.env, REVOCATION_WAIT: 'off' } }
  const { violations } = await runHistories(withoutWait, unguarded, journal)
  report.figure(
    `${unguarded.name}: accepted after an acknowledgement with REVOCATION_WAIT=off`,
    violations.length,
  )
  report.expect(violations.length > 0, 'the check finds nothing where revocations do not wait')
  report.failures('wrong responses', journal.failures)
  return report
}

export const runRevocationHistories = (part: Part): Promise<Report> => {
  const report = new Report(
    'Histories of revocations on two and three instances that are killed, frozen and cut off',
  )
  return checkHistories(part, report, [onPostgres(2), onPostgres(3)], onPostgres(2))
}

export const runWorkerHistories = (part: Part): Promise<Report> => {
  const report = new Report(
    'Histories of revocations on instances with two workers that are killed, frozen and cut off',
  )
  return checkHistories(part, report, [onPostgres(2, 2), ON_SQLITE], onPostgres(1, 2))
}
