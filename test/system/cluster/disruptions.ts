/** A way of disturbing the cluster, repeatedly, under load. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from '../../support/build.ts'
import { query } from '../../support/postgres.ts'
import type { Random } from '../../support/random.ts'
import { until } from '../../support/until.ts'
import { lossesOf, startFailoverLoad } from '../instances/failover-load.ts'
import { calls, type TimedResponse } from '../instances/http.ts'
import { freePort, Instance, meets, type Span } from '../instances/instance.ts'
import { milliseconds, quantile, Report } from '../instances/report.ts'
import { Journal } from '../instances/response-checks.ts'
import { PairClient } from '../instances/retrying-client.ts'
import { createRevocables } from '../instances/revocation-users.ts'
import type { Machine } from './machines.ts'
import { type Cluster, TIMING } from './patroni.ts'

export interface Disruption {
  readonly title: string
  /** Whether another server becomes the primary. */
  readonly movesPrimary: boolean
  begin(cluster: Cluster, primary: Machine): Promise<void> | void
  end?(cluster: Cluster, primary: Machine): void
}

export const DISRUPTIONS: Readonly<Record<string, Disruption>> = {
  switchover: {
    title: 'Switchover: Patroni is asked for another primary',
    movesPrimary: true,
    begin: (cluster, primary) => cluster.switchOver(primary),
  },
  kill: {
    title: "Kill: SIGKILL for every process of the primary's machine",
    movesPrimary: true,
    begin: (_, primary) => primary.kill(),
    end: (cluster, primary) => cluster.run(primary),
  },
  freeze: {
    title: "Freeze: SIGSTOP for every process of the primary's machine, later SIGCONT",
    movesPrimary: true,
    begin: (_, primary) => primary.signal('SIGSTOP'),
    end: (_, primary) => primary.signal('SIGCONT'),
  },
  hang: {
    title: 'Hang: SIGSTOP for Patroni of the primary, whose PostgreSQL runs on, later SIGCONT',
    movesPrimary: true,
    begin: (_, primary) => primary.signal('SIGSTOP', 'patroni'),
    end: (_, primary) => primary.signal('SIGCONT', 'patroni'),
  },
  etcd: {
    title: 'Etcd lost: SIGKILL for all of etcd, started again after twice the TTL',
    movesPrimary: false,
    begin: ({ machines }) => {
      for (const machine of machines) machine.signal('SIGKILL', 'etcd')
    },
    end: cluster => {
      for (const machine of cluster.machines) cluster.runEtcd(machine)
    },
  },
  split: {
    title: 'Split: the primary is cut off from the other machines, and the service still reaches it',
    movesPrimary: true,
    begin: (_, primary) => primary.setConnected(false, ['peers']),
    end: (_, primary) => primary.setConnected(true, ['peers']),
  },
  isolation: {
    title: 'Isolation: the primary is cut off from everything',
    movesPrimary: true,
    begin: (_, primary) => primary.setConnected(false),
    end: (_, primary) => primary.setConnected(true),
  },
}

/** Milliseconds of load before each disruption. */
const LOAD = { min: 600, max: 2_000 }

/** Milliseconds that it lasts after the first write to another primary, or without another primary. */
const REMAINING = { min: 0, max: 3_000 }
const OUTAGE = TIMING.ttl * 2_000

/** Milliseconds until an instance must acknowledge a write again, and for which 503 is accepted after that. */
const RESTORED = 30_000
const AFTERMATH = 5_000

const PROBE_INTERVAL = 20

/** Writes to one instance without end, and measures the time without an acknowledgement. */
class Probe {
  readonly instance: Instance
  /** When the last acknowledged write was sent and acknowledged. */
  #last = { sentAt: 0, respondedAt: performance.now() }
  #longest = 0

  constructor(client: PairClient, instance: Instance, token: string, signal: AbortSignal) {
    this.instance = instance
    const write = async (): Promise<void> => {
      for (let number = 0; !signal.aborted; number += 1) {
        // Another name each time: a change that changes nothing writes nothing.
        const response = await client.attempt(instance, calls.rename(token, `${instance.name} ${number}`))
        if (response?.status === 200) {
          this.#longest = Math.max(this.#longest, response.respondedAt - this.#last.respondedAt)
          this.#last = response
        }
        await sleep(PROBE_INTERVAL)
      }
    }
    void write()
  }

  reset(): void {
    this.#longest = 0
  }

  get longest(): number {
    return this.#longest
  }

  /** Waits for an acknowledged write that is sent from now on. */
  async acknowledged(): Promise<void> {
    const now = performance.now()
    if (!(await until(() => this.#last.sentAt > now, Boolean, RESTORED)))
      throw new Error(`${this.instance.name} takes no writes within ${milliseconds(RESTORED)}`)
  }
}

/** Instance A knows the addresses of all servers, B the address of HAProxy. */
const startInstances = async (
  context: Context,
  { direct, proxied }: ReturnType<Cluster['urls']>,
): Promise<readonly [Instance, Instance]> => {
  const pair = [
    new Instance(context, 'A (all hosts)', await freePort(), { DATABASE_URL: direct }),
    new Instance(context, 'B (HAProxy)', await freePort(), { DATABASE_URL: proxied }),
  ] as const
  await Promise.all(pair.map(instance => instance.start()))
  return pair
}

export const disrupt = async (
  { name, title, movesPrimary, begin, end }: Disruption & { readonly name: string },
  {
    context,
    cluster,
    random,
    rounds,
  }: { context: Context; cluster: Cluster; random: Random; rounds: number },
): Promise<Report> => {
  const report = new Report(title)
  const journal = new Journal()
  let primary = await cluster.healthy()
  await query(cluster.url(primary, 'postgres'), `CREATE DATABASE "${name}"`)
  const pair = await startInstances(context, cluster.urls(name))
  const client = new PairClient(pair, journal, random)
  const [user] = await createRevocables(pair[0], 1, 'probe')
  if (user === undefined) throw new Error('there is no user to probe with')
  const load = startFailoverLoad(client, pair, journal, random)
  const stop = new AbortController()
  const probes = pair.map(instance => new Probe(client, instance, user.token, stop.signal))
  const writable = () => Promise.all(probes.map(probe => probe.acknowledged()))
  const disruptions: Span[] = []
  const gaps: number[][] = pair.map(() => [])

  for (let round = 0; round < rounds; round += 1) {
    await sleep(random.integer(LOAD.min, LOAD.max))
    for (const probe of probes) probe.reset()
    const former = primary
    const from = performance.now()
    await begin(cluster, former)
    if (movesPrimary) {
      await cluster.leaderAfter(former)
      await writable()
      await sleep(random.integer(REMAINING.min, REMAINING.max))
    } else await sleep(OUTAGE)
    end?.(cluster, former)
    primary = await cluster.healthy()
    await writable()
    disruptions.push({ from, to: performance.now() })
    for (const [index, { longest }] of probes.entries()) gaps[index]?.push(longest)
  }
  await sleep(LOAD.min)
  stop.abort()
  await load.stop()
  const lost = await lossesOf(load, client, pair, cluster.url(primary, name))
  const stopped = await Promise.all(pair.map(instance => instance.stop('SIGTERM')))
  client.close()

  const isUnfounded = ({ sentAt, respondedAt }: TimedResponse): boolean =>
    !disruptions.some(({ from, to }) => meets({ from, to: to + AFTERMATH }, sentAt, respondedAt))
  report.figure('rounds', rounds)
  report.figure('responses · of them 503', `${journal.responses} · ${client.unavailable.length}`)
  report.figure(
    'acknowledged: sign-ups · renames sent · revocations',
    `${load.holders.length} · ${load.renames} · ${load.holders.filter(({ revoked }) => revoked !== null).length}`,
  )
  report.figure('responses to revoked tokens', load.watched)
  report.figure('slowest response', milliseconds(journal.slowest))
  for (const [index, { name }] of pair.entries()) {
    const values = gaps[index] ?? []
    report.figure(
      `${name}: time without a write, p50 / max`,
      [0.5, 1].map(part => milliseconds(quantile(values, part))).join(' / '),
    )
  }
  report.failures('acknowledged writes lost', lost)
  report.failures('revoked tokens taken', load.taken)
  report.failures('wrong responses', journal.failures)
  report.failures(
    '503 without a disruption',
    client.unavailable.filter(isUnfounded).map(({ text }) => text),
  )
  report.expect(
    stopped.every(code => code === 0),
    `after all that, SIGTERM ended them with ${stopped}`,
  )
  return report
}
