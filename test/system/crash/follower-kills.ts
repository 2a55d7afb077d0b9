/**
 * Kills a process again and again that writes events and follows them, as a durable consumer and for a webhook. Each follower must get
 * every event at least once and in order, and its cursor must neither move back nor be ahead of what it got (docs/design.md, "Features",
 * "Webhooks").
 */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { isLater, type LogPosition } from '#core/audit-log/listing'
import { openStorage } from '#core/store/open'
import type { Storage } from '#core/store/store'
import type { ConsumerStore } from '#feature/consumers/stored-consumers'
import { allFeatures } from '#features/built-in'
import type { WebhookStore } from '#features/webhooks/stored-webhooks'
import { watching } from '../../features/watching.ts'
import { build, type Context, temporaryFolder } from '../../support/build.ts'
import { spawnScript } from '../../support/process.ts'
import type { Random } from '../../support/random.ts'
import { until } from '../../support/until.ts'
import { accept, allowing, createWebhook, type Receiver, receiver } from '../../support/webhook-receiver.ts'

export interface FollowerKills {
  /** Events in the log. */
  readonly events: number
  /** How often the consumer, and the webhook, got an event again. */
  readonly handledAgain: number
  readonly sentAgain: number
  /** What must not happen. */
  readonly failures: readonly string[]
}

/** Milliseconds of load before a kill, and of starting before an early kill. */
const LOAD = { min: 20, max: 600 }
const STARTING = { min: 50, max: 700 }

/** Events that the receiver accepts before a kill that follows the response at once. */
const ACCEPTED = { min: 1, max: 60 }

/** Every nth process is killed while it starts. */
const KILL_START_EVERY = 5

/** Milliseconds by which the clock of each process is ahead of the one before, so that a killed one has no lease any more. */
const LEASE = 30_000

/** Milliseconds until a process that does not start, or a follower that does not get to the end, counts as failed. */
const WAIT = 60_000

const CONSUMER = 'watching.watch'

const open = async (t: Context, databaseUrl: string): Promise<Storage> => {
  const location = databaseUrl.startsWith('sqlite:')
    ? ({ engine: 'sqlite', file: databaseUrl.slice('sqlite:'.length) } as const)
    : ({ engine: 'postgres', url: databaseUrl } as const)
  const storage = await openStorage(location, 2, allFeatures())
  t.teardown(() => storage.close())
  return storage
}

/** Ids in the order of the log. */
const readLog = async ({ events: log }: Storage): Promise<string[]> => {
  const ids: string[] = []
  let after: LogPosition | null = null
  for (;;) {
    const page: { readonly events: readonly { readonly id: string }[]; readonly next: LogPosition } =
      await log.follow({ filter: {}, after, limit: 1_000 })
    ids.push(...page.events.map(({ id }) => id))
    if (page.events.length < 1_000) return ids
    after = page.next
  }
}

/** A follower: its cursor in the store, and what each process passed on to it. */
class Follower {
  readonly failures: string[] = []
  /** Ids of events, one list for each process. */
  readonly runs: (readonly string[])[] = []
  readonly #name: string
  readonly #log: Storage['events']
  readonly #cursor: () => Promise<LogPosition>
  /** The first event behind the cursor after each run. */
  readonly #next: (string | undefined)[] = []
  #last: LogPosition | null = null

  constructor(name: string, log: Storage['events'], cursor: () => Promise<LogPosition>) {
    this.#name = name
    this.#log = log
    this.#cursor = cursor
  }

  async look(): Promise<LogPosition> {
    const cursor = await this.#cursor()
    if (this.#last !== null && isLater(this.#last, cursor))
      this.failures.push(
        `${this.#name}: the cursor moved back from ${this.#last.position} to ${cursor.position}`,
      )
    this.#last = cursor
    return cursor
  }

  /** @returns the id of the first event behind the cursor. */
  async next(): Promise<string | undefined> {
    const { events } = await this.#log.follow({ filter: {}, after: await this.look(), limit: 1 })
    return events[0]?.id
  }

  async addRun(ids: readonly string[]): Promise<void> {
    this.runs.push(ids)
    this.#next.push(await this.next())
  }

  /** Compares the runs with the log. @returns how often an event was passed on again. */
  check(log: readonly string[]): number {
    const indexes = new Map(log.map((id, index) => [id, index]))
    const indexOf = (id: string): number => indexes.get(id) ?? Number.NaN
    let [next, passed] = [0, 0]
    for (const [at, ids] of this.runs.entries()) {
      const run = ids.map(indexOf)
      const name = `${this.#name}, process ${at}`
      const [first = next] = run
      if (first > next) this.failures.push(`${name} began at event ${first}, and ${next} was not passed on`)
      for (const [index, event] of run.entries())
        if (index > 0 && event !== Number(run[index - 1]) + 1)
          this.failures.push(`${name}: event ${run[index - 1]}, then ${event}`)
      passed += run.length
      next = run.reduce((most, event) => Math.max(most, event + 1), next)
      const behindCursor = this.#next[at]
      if (behindCursor !== undefined && indexOf(behindCursor) > next)
        this.failures.push(`${name}: the cursor is ahead of what was passed on`)
    }
    if (next !== log.length)
      this.failures.push(`${this.#name}: ${log.length - next} events were not passed on`)
    return passed - log.length
  }
}

/** Resolves when the receiver has accepted so many more events. */
const accepted = (hook: Receiver, count: number): Promise<void> => {
  const { promise, resolve } = Promise.withResolvers<void>()
  let left = count
  hook.respondWith(response =>
    response.writeHead(204).end(() => {
      left -= 1
      if (left === 0) resolve()
    }),
  )
  return promise
}

/** Starts a process, and kills it while it starts, under load, or when the receiver has accepted an event. */
const runAndKill = async (
  t: Context,
  env: Record<string, string>,
  kill: number,
  random: Random,
  { hook, followers }: { readonly hook: Receiver; readonly followers: readonly Follower[] },
): Promise<void> => {
  const child: ChildProcess = spawnScript(['test/system/crash/follower-process.ts'], env, 'pipe')
  let output = ''
  child.stderr?.on('data', chunk => {
    output += chunk
  })
  const exited = once(child, 'exit')
  t.teardown(() => child.kill('SIGKILL'))
  const inTime = async (work: Promise<unknown>, what: string): Promise<void> => {
    const late = sleep(WAIT, 'late', { ref: false })
    const ended = await Promise.race([work.then(() => 'done'), exited.then(() => 'exited'), late])
    if (ended !== 'done') throw new Error(`the process does not ${what}, it is ${ended}:\n${output}`)
  }
  if (kill % KILL_START_EVERY === 0) await sleep(random.integer(STARTING.min, STARTING.max))
  else if (kill % 2 === 0) {
    await inTime(once(child.stdout as Readable, 'data'), 'start')
    const end = performance.now() + random.integer(LOAD.min, LOAD.max)
    while (performance.now() < end) for (const follower of followers) await follower.look()
  } else await inTime(accepted(hook, random.integer(ACCEPTED.min, ACCEPTED.max)), 'deliver')
  child.kill('SIGKILL')
  await exited
}

/** The lines of a file, which a killed process may not have written. */
const linesOf = (file: string): string[] => {
  try {
    return readFileSync(file, 'utf8').trimEnd().split('\n')
  } catch {
    return []
  }
}

/** @param databaseUrl of a database with the schema of the service. */
export const killFollowers = async (
  t: Context,
  databaseUrl: string,
  random: Random,
  kills: number,
): Promise<FollowerKills> => {
  const storage = await open(t, databaseUrl)
  const [consumers, webhooks] = [
    storage.features.consumers as ConsumerStore,
    storage.features.webhooks as WebhookStore,
  ]
  const consumer = new Follower('consumer', storage.events, async () => {
    const { position = -1, eventId: id = '' } = (await consumers.findConsumer(CONSUMER)) ?? {}
    return { position, id }
  })
  const webhook = new Follower('webhook', storage.events, async () => {
    const [state] = await webhooks.listWebhookStates()
    return state?.cursor.position ?? { position: -1, id: '' }
  })
  const followers = [consumer, webhook]
  const hook = await receiver(t)
  const env = { DATABASE_URL: databaseUrl, ...allowing(hook) }
  /** An app of this process, as the first and the last one. */
  const start = (handled: string[], offset: number) =>
    build(t, {
      env,
      features: [watching(({ id }) => void handled.push(id))],
      clock: () => Date.now() + offset,
      jobPace: { startWithin: 1, maxWait: 20 },
    })
  let arrived = 0
  const addRuns = async (handled: readonly string[]): Promise<void> => {
    await consumer.addRun(handled)
    await webhook.addRun(hook.ids().slice(arrived))
    arrived = hook.ids().length
  }

  const first: string[] = []
  const creator = await start(first, 0)
  await createWebhook(creator, { url: hook.url })
  await creator.close()
  await addRuns(first)
  const folder = temporaryFolder(t)
  for (let kill = 1; kill <= kills; kill += 1) {
    const file = join(folder, `${kill}.txt`)
    const ofProcess = { ...env, HANDLED_FILE: file, CLOCK_OFFSET: String(kill * LEASE) }
    await runAndKill(t, ofProcess, kill, random, { hook, followers })
    await addRuns(linesOf(file))
  }
  const last: string[] = []
  hook.respondWith(accept)
  await start(last, (kills + 1) * LEASE)
  for (const follower of followers)
    await until(
      () => follower.next(),
      id => id === undefined,
      WAIT,
    )
  await addRuns(last)
  const log = await readLog(storage)
  const [handledAgain, sentAgain] = [consumer.check(log), webhook.check(log)]
  return {
    events: log.length,
    handledAgain,
    sentAgain,
    failures: [...consumer.failures, ...webhook.failures],
  }
}
