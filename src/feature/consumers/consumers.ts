/**
 * Durable consumers of the audit log: each has a cursor in the store, and gets every event at least once, in order, in one process of all.
 * What a crash or a failing handler interrupts is repeated from the cursor.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type AuditEvent, serializeEvent } from '#core/audit-log/event'
import type { LoggedEvent } from '#core/audit-log/event-feed'
import { COUNTED, LOG_START, type LogPosition } from '#core/audit-log/listing'
import type { EventLog } from '#core/store/store'
import type { JobRun, ScheduledJob } from '../jobs/jobs.ts'
import type { ConsumerOutcome, ConsumerStore, StoredConsumer } from './stored-consumers.ts'

export interface Delivery {
  /** 1 for the first attempt of this process. */
  readonly attempt: number
  /** Aborted when the service stops, when another process is the consumer, and after a minute, when the attempt counts as failed. */
  readonly signal: AbortSignal
}

/** @typeParam Deps what the services of the feature are created with. */
export interface Consumer<Deps> {
  /** Whether the settings switch it on. One that is off costs nothing, and its cursor begins at the end of the log when it is on first. Default: on. */
  readonly isEnabled?: (deps: Deps) => boolean
  /** Types of events. Default: all. */
  readonly types?: readonly string[]
  /** Called for each event at least once, in order. While it fails, later events wait: it is repeated after 1 s, 2 s, … 5 min. */
  readonly handle: (deps: Deps, event: LoggedEvent, delivery: Delivery) => unknown
}

/** A consumer of a host, or of a feature without its dependencies. */
export interface HostConsumer {
  /** Names its cursor in the store. */
  readonly name: string
  /** Types of events. Default: all. */
  readonly types?: readonly string[]
  /** Called for each event at least once, in order. While it fails, later events wait: it is repeated after 1 s, 2 s, … 5 min. */
  readonly handle: (event: LoggedEvent, delivery: Delivery) => unknown
}

export interface ConsumerStatistics {
  readonly consumer: string
  handled: number
  failed: number
  /** Events that wait, at most `COUNTED`; 0 in a process that is not the consumer. */
  waiting: number
  /** Age of the next event in seconds. */
  lag: number
}

export interface ConsumersDeps {
  readonly consumers: readonly HostConsumer[]
  readonly store: ConsumerStore
  readonly events: EventLog
  readonly clock: () => number
  readonly onFailure: (consumer: string, event: LoggedEvent, error: unknown) => void
  /** Called when the log or a cursor could not be read or written. */
  readonly onStoreFailure: (error: unknown) => void
  /** Milliseconds until the first repetition. Default: that of production. */
  readonly backOff?: number | undefined
}

/** Milliseconds between reads of the log. */
const INTERVAL = 200

/** Events of one read. */
const PAGE = 100

/** Milliseconds until a handler counts as failed. */
const HANDLER_LIMIT = 60_000

/** Milliseconds until the first repetition of an event, and between two repetitions at most. */
const BACK_OFF = 1_000
const MAX_BACK_OFF = 300_000

/** Milliseconds between two writes of a cursor, and between two looks whether an operator has moved it. */
const STORE_INTERVAL = 500
const LOOK_INTERVAL = 1_000

/** Characters of an error that are stored. */
const ERROR_LENGTH = 500

/** The run goes on from the cursor in the store. */
class CursorMoved extends Error {
  constructor(outcome: Exclude<ConsumerOutcome, 'done'>) {
    super(outcome)
  }
}

class Handling {
  readonly #deps: ConsumersDeps
  readonly #consumer: HostConsumer
  readonly #run: JobRun
  readonly #statistics: ConsumerStatistics
  #revision: number
  /** Handled up to here; `#stored` is what the store knows of it. */
  #position: LogPosition
  #stored: LogPosition
  /** When the position was stored, by the monotonic clock. */
  #storedAt = performance.now()
  #lookedAt = performance.now()

  constructor(
    deps: ConsumersDeps,
    consumer: HostConsumer,
    run: JobRun,
    statistics: ConsumerStatistics,
    { revision, position, eventId: id }: StoredConsumer,
  ) {
    this.#deps = deps
    this.#consumer = consumer
    this.#run = run
    this.#statistics = statistics
    this.#revision = revision
    this.#position = { position, id }
    this.#stored = this.#position
  }

  /** Handles events until the run ends. @throws {CursorMoved} also when the lease is lost; errors of the store. */
  async handle(): Promise<never> {
    try {
      for (;;) {
        const isComplete = await this.#handlePage()
        await this.#look()
        if (isComplete) await this.#wait(INTERVAL)
      }
    } finally {
      await this.#store()
    }
  }

  /** @returns whether the end of the log is reached. */
  async #handlePage(): Promise<boolean> {
    const { events: log, clock } = this.#deps
    const { types } = this.#consumer
    const { events, positions, next } = await log.follow({ filter: {}, after: this.#position, limit: PAGE })
    const isComplete = events.length < PAGE
    this.#statistics.waiting = isComplete ? events.length : await log.countAfter(this.#position, COUNTED)
    for (const [index, event] of events.entries()) {
      this.#run.signal.throwIfAborted()
      const position = positions[index] ?? next
      this.#statistics.lag = Math.max(0, clock() - event.at) / 1_000
      if (types === undefined || types.includes(event.type)) await this.#handleEvent(event, position)
      this.#position = position
      if (this.#statistics.waiting > 0) this.#statistics.waiting -= 1
      if (performance.now() - this.#storedAt >= STORE_INTERVAL) await this.#store()
    }
    this.#position = next
    if (isComplete) Object.assign(this.#statistics, { lag: 0, waiting: 0 })
    await this.#store()
    return isComplete
  }

  /** Repeats an event until it is handled. */
  async #handleEvent(event: AuditEvent<string | null>, position: LogPosition): Promise<void> {
    const { onFailure, backOff = BACK_OFF } = this.#deps
    const logged = serializeEvent(event)
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.#attempt(logged, attempt)
        this.#statistics.handled += 1
        return
      } catch (error) {
        this.#run.signal.throwIfAborted()
        this.#statistics.failed += 1
        onFailure(this.#consumer.name, logged, error)
        await this.#recordFailure(position, attempt, error)
        await this.#wait(Math.min(backOff * 2 ** (attempt - 1), MAX_BACK_OFF))
      }
    }
  }

  async #attempt(event: LoggedEvent, attempt: number): Promise<void> {
    const signal = AbortSignal.any([this.#run.signal, AbortSignal.timeout(HANDLER_LIMIT)])
    const { promise, reject } = Promise.withResolvers<never>()
    const abort = (): void => reject(signal.reason)
    signal.addEventListener('abort', abort)
    try {
      // Async, so that what a handler throws at once is a rejection too.
      const handle = async (): Promise<unknown> => this.#consumer.handle(event, { attempt, signal })
      await Promise.race([handle(), promise])
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  async #recordFailure(position: LogPosition, failures: number, error: unknown): Promise<void> {
    await this.#store()
    const text = (error instanceof Error ? `${error.name}: ${error.message}` : String(error)).slice(
      0,
      ERROR_LENGTH,
    )
    const failure = { failures, error: text.replaceAll('\0', '') }
    const { store, clock } = this.#deps
    this.#assert(await store.recordConsumerFailure(this.#identity, position, failure, clock()))
  }

  get #identity() {
    const { job, fence } = this.#run
    return { run: { job, fence }, name: this.#consumer.name, revision: this.#revision }
  }

  async #store(): Promise<void> {
    const { store, clock } = this.#deps
    const position = this.#position
    if (position.position === this.#stored.position && position.id === this.#stored.id) return
    this.#assert(await store.advanceConsumer(this.#identity, position, clock()))
    this.#stored = position
    this.#storedAt = performance.now()
  }

  #assert(outcome: ConsumerOutcome): void {
    if (outcome === 'done') return
    // What was handled belongs to a cursor that is not in force any more.
    this.#position = this.#stored
    throw new CursorMoved(outcome)
  }

  /** Looks once a second whether an operator has moved the cursor. */
  async #look(): Promise<void> {
    if (performance.now() - this.#lookedAt < LOOK_INTERVAL) return
    this.#lookedAt = performance.now()
    const found = await this.#deps.store.findConsumer(this.#consumer.name)
    if (found?.revision !== this.#revision) this.#assert('changed')
  }

  /** @throws when the run is aborted. */
  async #wait(milliseconds: number): Promise<void> {
    const end = performance.now() + milliseconds
    for (let left = milliseconds; left > 0; left = end - performance.now()) {
      await sleep(Math.min(left, LOOK_INTERVAL), undefined, { ref: false, signal: this.#run.signal })
      await this.#look()
    }
  }
}

export class Consumers {
  readonly #deps: ConsumersDeps
  readonly #statistics: readonly ConsumerStatistics[]

  constructor(deps: ConsumersDeps) {
    this.#deps = deps
    this.#statistics = deps.consumers.map(({ name }) => ({
      ...{ consumer: name, handled: 0, failed: 0, waiting: 0, lag: 0 },
    }))
  }

  get statistics(): readonly Readonly<ConsumerStatistics>[] {
    return this.#statistics
  }

  /** A job for each consumer, whose lease says which process handles its events. */
  get jobs(): readonly ScheduledJob[] {
    return this.#deps.consumers.map((consumer, index) => ({
      name: `consumers.${consumer.name}`,
      every: 1_000,
      isContinuous: true,
      run: run => this.#consume(consumer, this.#statistics[index] as ConsumerStatistics, run),
    }))
  }

  /** Adds the cursors of new consumers at the end of the log: they get every event from now on. */
  async start(): Promise<void> {
    const { consumers, store, events, clock } = this.#deps
    for (const { name } of consumers) {
      if ((await store.findConsumer(name)) !== undefined) continue
      await store.addConsumer(name, events.positionKind, await events.end(), clock())
    }
  }

  async #consume(consumer: HostConsumer, statistics: ConsumerStatistics, run: JobRun): Promise<void> {
    try {
      while (await this.#handle(consumer, statistics, run))
        await sleep(INTERVAL, undefined, { ref: false, signal: run.signal })
    } finally {
      Object.assign(statistics, { lag: 0, waiting: 0 })
    }
  }

  /** @returns whether to go on: the cursor was moved, or the store failed. False when another process has the lease. */
  async #handle(consumer: HostConsumer, statistics: ConsumerStatistics, run: JobRun): Promise<boolean> {
    try {
      const stored = await this.#resume(consumer.name)
      return await new Handling(this.#deps, consumer, run, statistics, stored).handle()
    } catch (error) {
      run.signal.throwIfAborted()
      if (error instanceof CursorMoved) return error.message === 'changed'
      this.#deps.onStoreFailure(error)
      return true
    }
  }

  /** The cursor of a consumer, in the positions of this store: a copy of the database into another engine has other ones. */
  async #resume(name: string): Promise<StoredConsumer> {
    const { store, events, clock } = this.#deps
    const stored = await store.findConsumer(name)
    if (stored === undefined) {
      await this.start()
      return this.#resume(name)
    }
    if (stored.positionKind === events.positionKind) return stored
    // An event that the log does not have any more: everything is repeated, rather than left out.
    const position = (await events.findPosition(stored.eventId)) ?? LOG_START
    await store.setConsumer(name, events.positionKind, position, clock())
    return this.#resume(name)
  }
}
