/**
 * Histories of tokens on several instances that are killed, frozen, and cut from their database: no request that begins after a revocation
 * was acknowledged is accepted, on any instance (`src/storage/postgres/process-leases.ts`). The same run with `REVOCATION_WAIT=off` must
 * find such requests, else the check is worth nothing.
 */
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { ADMIN_KEY } from '../../support/build.ts'
import { bodyOf, type Call, calls, send, type TimedResponse } from './http.ts'
import { freePort, Instance } from './instance.ts'
import type { Part } from './part.ts'
import { milliseconds, Report, spread } from './report.ts'
import { asLost, Journal } from './response-checks.ts'
import { PASSWORD } from './revocation-users.ts'
import { startTcpProxy, type TcpProxy } from './stalling-proxy.ts'

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

const runHistories = async (
  { context, random, databaseUrl, env }: Part,
  count: number,
  limit: number,
  journal: Journal,
): Promise<Outcome> => {
  const { hostname: host, port } = new URL(databaseUrl)
  const behind = async (): Promise<readonly [Instance, TcpProxy]> => {
    const proxy = await startTcpProxy(context, { host, port: Number(port) })
    const url = new URL(databaseUrl)
    url.port = String(proxy.port)
    const instance = new Instance(context, `instance ${proxy.port}`, await freePort(), {
      ...env,
      DATABASE_URL: url.href,
    })
    await instance.start()
    return [instance, proxy]
  }
  const pairs = await Promise.all(Array.from({ length: count }, behind))
  const instances = pairs.map(([instance]) => instance)
  const agents = new Map(instances.map(instance => [instance, new Agent({ keepAlive: true })]))
  let requests = 0
  const askOn = (instance: Instance, call: Call) => {
    requests += 1
    return send(instance.url, call, agents.get(instance) as Agent).then(
      response => {
        journal.response(instance.name, call, response)
        return response
      },
      // Of an instance that is down.
      error => asLost(error) && null,
    )
  }
  const askAny: Ask = call => askOn(random.pick(instances) as Instance, call)

  const owners: Owner[] = []
  for (let number = 0; number < USERS; number += 1) {
    const response = await askAny(
      calls.signUp(
        `histories-${number}-of-${instances.map(({ url }) => new URL(url).port).join('-')}@example.com`,
        PASSWORD,
      ),
    )
    if (response?.status !== 201) throw new Error(`sign-up returned ${response?.status}`)
    const { user, accessToken } = bodyOf(response) as { user: { id: string }; accessToken: string }
    owners.push({ id: user.id, token: accessToken })
  }

  let running = true
  const disruptions = { kills: 0, freezes: 0, partitions: 0, cuts: 0 }
  const kinds = Object.entries(SHARES).flatMap(([kind, share]) =>
    Array<keyof typeof disruptions>(share).fill(kind as keyof typeof disruptions),
  )
  const disrupt = async ([instance, proxy]: readonly [Instance, TcpProxy]): Promise<void> => {
    while (running) {
      await sleep(random.integer(PEACE.min, PEACE.max))
      if (!running) return
      const away = random.integer(AWAY.min, AWAY.max)
      const kind = random.pick(kinds)
      if (kind === undefined) continue
      disruptions[kind] += 1
      if (kind === 'cuts') proxy.cut()
      else if (kind === 'kills') {
        await instance.stop('SIGKILL')
        await sleep(away)
        await instance.start()
      } else if (kind === 'freezes') {
        instance.signal('SIGSTOP')
        await sleep(away)
        instance.signal('SIGCONT')
      } else {
        proxy.hold()
        await sleep(away)
        if (random.integer(1, 2) === 1) proxy.cut()
        proxy.flow()
      }
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
    const check = (instance: Instance, response: TimedResponse | null): void => {
      if (response === null || response.sentAt <= acknowledgedAt) return
      afterwards += 1
      if (response.status === 200)
        violations.push(
          `${kind}: ${instance.name} accepted a request ${milliseconds(response.sentAt - acknowledgedAt)} after the acknowledgement`,
        )
    }
    const use = async (instance: Instance): Promise<void> => {
      for (let left = AFTERWARDS; !isOver && left > 0; ) {
        if (acknowledgedAt < Number.POSITIVE_INFINITY) left -= 1
        check(instance, await askOn(instance, life.use))
      }
    }
    const users = instances.map(use)
    await sleep(random.integer(USED.min, USED.max))
    const revoked = await askAny(life.revocation)
    if (revoked !== null && isSuccess(revoked)) {
      acknowledgedAt = revoked.respondedAt
      revocations.push(revoked.respondedAt - revoked.sentAt)
      // Requests that begin with the acknowledgement: those of the loops above may be on their way for longer.
      await Promise.all(instances.map(async instance => check(instance, await askOn(instance, life.use))))
    } else isOver = true
    await Promise.all(users)
  }
  const work = async (): Promise<void> => {
    while (running && requests < limit && violations.length < FOUND) await live()
  }
  const disrupting = pairs.map(disrupt)
  await Promise.all(Array.from({ length: LIVES }, work))
  running = false
  await Promise.all(disrupting)
  await Promise.all(instances.map(instance => instance.stop('SIGTERM')))
  for (const agent of agents.values()) agent.destroy()
  return { requests, revocations, violations, afterwards, disruptions }
}

export const runRevocationHistories = async (part: Part): Promise<Report> => {
  const report = new Report(
    'Histories of revocations on two and three instances that are killed, frozen and cut off',
  )
  const journal = new Journal()
  for (const count of [2, 3]) {
    const { requests, revocations, violations, afterwards, disruptions } = await runHistories(
      part,
      count,
      REQUESTS * part.rounds,
      journal,
    )
    report.figure(`${count} instances: requests · after an acknowledgement`, `${requests} · ${afterwards}`)
    report.figure(
      `${count} instances: disruptions`,
      Object.entries(disruptions)
        .map(([kind, times]) => `${times} ${kind}`)
        .join(', '),
    )
    report.figure(
      `${count} instances: revocations: p50 / p99 / max`,
      `${revocations.length}: ${spread(revocations)}`,
    )
    report.failures(`${count} instances: accepted after an acknowledgement`, violations)
  }
  const unguarded = { ...part, env: { ...part.env, REVOCATION_WAIT: 'off' } }
  const { violations } = await runHistories(unguarded, 2, REQUESTS * part.rounds, journal)
  report.figure('accepted after an acknowledgement with REVOCATION_WAIT=off', violations.length)
  report.expect(violations.length > 0, 'the check finds nothing where revocations do not wait')
  report.failures('wrong responses', journal.failures)
  return report
}
