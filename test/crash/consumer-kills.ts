/**
 * Kills a process with a durable consumer again and again while events are written. Every event must be handled at least once, in order,
 * and the cursor must neither move back nor be ahead of what was handled (docs/design.md, "Features").
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { isLater, type LogPosition } from '../../src/audit-log/listing.ts'
import type { ConsumerStore } from '../../src/consumers/stored-consumers.ts'
import { watching } from '../features/watching.ts'
import { build, type Context, temporaryFolder } from '../support/build.ts'
import { spawnScript } from '../support/process.ts'
import type { Random } from '../support/random.ts'
import { until } from '../support/until.ts'

type App = Awaited<ReturnType<typeof build>>

export interface Kills {
  readonly kills: number
  /** Events in the log, and how often one was handled, or arrived, again. */
  readonly events: number
  readonly repeated: number
  /** What must not happen. */
  readonly failures: readonly string[]
}

/** Milliseconds of load before a kill, and of starting before an early kill. */
const LOAD = { min: 20, max: 600 }
const STARTING = { min: 50, max: 700 }

/** Every nth process is killed while it starts. */
const KILL_START_EVERY = 5

/** Milliseconds by which the clock of each process is ahead of the one before, so that a killed one has no lease any more. */
const LEASE = 16_000

/** Milliseconds until a process that does not start, or a consumer that does not get to the end, counts as failed. */
const WAIT = 60_000

const NAME = 'watching.watch'

/** Ids in the order of the log. */
export const readLog = async ({ services }: App): Promise<string[]> => {
  const ids: string[] = []
  let after: LogPosition | null = null
  for (;;) {
    const page: { readonly events: readonly { readonly id: string }[]; readonly next: LogPosition } =
      await services.storage.events.follow({ filter: {}, after, limit: 1_000 })
    ids.push(...page.events.map(({ id }) => id))
    if (page.events.length < 1_000) return ids
    after = page.next
  }
}

/** Follows the cursor in the store. */
class CursorWatch {
  readonly failures: string[] = []
  readonly #app: App
  #last: LogPosition | null = null

  constructor(app: App) {
    this.#app = app
  }

  /** @returns the cursor; `null` before the first process has added it. */
  async look(): Promise<LogPosition | null> {
    const store = this.#app.services.storage.features.consumers as ConsumerStore
    const found = await store.findConsumer(NAME)
    if (found === undefined) return null
    const cursor = { position: found.position, id: found.eventId }
    if (this.#last !== null && isLater(this.#last, cursor))
      this.failures.push(`the cursor moved back from ${this.#last.position} to ${cursor.position}`)
    this.#last = cursor
    return cursor
  }

  async lookFor(milliseconds: number): Promise<void> {
    const end = performance.now() + milliseconds
    while (performance.now() < end) {
      await this.look()
      await sleep(Math.min(20, Math.max(0, end - performance.now())))
    }
  }

  /** The first event behind the cursor, which is the next one to be handled. */
  async next(): Promise<string | undefined> {
    const after = await this.look()
    const { events } = await this.#app.services.storage.events.follow({ filter: {}, after, limit: 1 })
    return events[0]?.id
  }
}

/** Runs one process and kills it. @param early milliseconds after its start; `null`: under load. */
const runAndKill = async (
  t: Context,
  env: Record<string, string>,
  watch: CursorWatch,
  { early, load }: { readonly early: number | null; readonly load: number },
): Promise<void> => {
  const child = spawnScript(['test/crash/consumer-process.ts'], env, 'pipe')
  let output = ''
  child.stderr?.on('data', chunk => {
    output += chunk
  })
  const ready = once(child.stdout as Readable, 'data').then(() => true)
  const exited = once(child, 'exit')
  t.teardown(() => child.kill('SIGKILL'))
  if (early === null) {
    const started = await Promise.race([ready, exited.then(() => false), sleep(WAIT, false, { ref: false })])
    if (!started) throw new Error(`the process did not start:\n${output}`)
    await watch.lookFor(load)
  } else await sleep(early)
  child.kill('SIGKILL')
  await exited
}

/** What a process handled: consecutive events of the log, which begin at or before the next one that nobody has handled. */
const failuresOf = (handled: readonly number[], next: number, name: string): string[] => {
  const failures = handled.flatMap((index, at) =>
    at > 0 && index !== Number(handled[at - 1]) + 1
      ? [`${name}: event ${handled[at - 1]}, then ${index}`]
      : [],
  )
  const [first = next] = handled
  return first > next
    ? [...failures, `${name} began at event ${first}, and ${next} was not handled`]
    : failures
}

/** @param databaseUrl of a database with the schema of the service. */
export const killConsumers = async (
  t: Context,
  databaseUrl: string,
  random: Random,
  kills: number,
): Promise<Kills> => {
  const observer = await build(t, { env: { DATABASE_URL: databaseUrl } })
  const watch = new CursorWatch(observer)
  const folder = temporaryFolder(t)
  const files: string[] = []
  const nextAfterKill: (string | undefined)[] = []
  for (let kill = 1; kill <= kills; kill += 1) {
    const file = join(folder, `${kill}.txt`)
    const env = { DATABASE_URL: databaseUrl, HANDLED_FILE: file, CLOCK_OFFSET: String(kill * LEASE) }
    const isEarly = kill % KILL_START_EVERY === 0
    const early = isEarly ? random.integer(STARTING.min, STARTING.max) : null
    await runAndKill(t, env, watch, { early, load: random.integer(LOAD.min, LOAD.max) })
    files.push(file)
    nextAfterKill.push(await watch.next())
  }
  const last: string[] = []
  await build(t, {
    env: { DATABASE_URL: databaseUrl },
    features: [watching(({ id }) => void last.push(id))],
    clock: () => Date.now() + (kills + 1) * LEASE,
    jobPace: { startWithin: 1, maxWait: 20 },
  })
  await until(
    () => watch.next(),
    id => id === undefined,
    WAIT,
  )
  const log = await readLog(observer)
  const indexes = new Map(log.map((id, index) => [id, index]))
  const indexOf = (id: string): number => indexes.get(id) ?? Number.NaN
  const runs = [...files.map(linesOf), last].map(ids => ids.map(indexOf))
  const failures = [...watch.failures]
  let [next, handled] = [0, 0]
  for (const [at, run] of runs.entries()) {
    failures.push(...failuresOf(run, next, `process ${at + 1}`))
    handled += run.length
    next = run.reduce((most, index) => Math.max(most, index + 1), next)
    const behindCursor = nextAfterKill[at]
    if (behindCursor !== undefined && indexOf(behindCursor) > next)
      failures.push(`the cursor of process ${at + 1} is ahead of what was handled`)
  }
  if (next !== log.length) failures.push(`${log.length - next} events were not handled`)
  return { kills, events: log.length, repeated: handled - log.length, failures }
}

/** The lines of a file, which a killed process may not have written. */
const linesOf = (file: string): string[] => {
  try {
    return readFileSync(file, 'utf8').trimEnd().split('\n')
  } catch {
    return []
  }
}
