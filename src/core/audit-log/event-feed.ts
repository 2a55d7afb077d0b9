/** Passes the events of the audit log to a handler in this process, in the order in which they become visible. */
import { setImmediate as nextRound } from 'node:timers/promises'
import { endsWithin } from '#base/concurrency/ends-within'
import type { EventStore } from '../store/store.ts'
import type { AuditEvent } from './event.ts'
import { serializeEvent } from './event.ts'
import type { LogPosition } from './listing.ts'

/** An event as `GET /admin/events` returns it. */
export type LoggedEvent = ReturnType<typeof serializeEvent>

export type EventHandler = (event: LoggedEvent) => unknown

export interface EventFeedDeps {
  readonly store: EventStore
  readonly handler: EventHandler
  readonly onFailure: (error: unknown, message: string) => void
}

/** Milliseconds between reads of the log. */
const INTERVAL = 200

/** Events of one read. */
const PAGE = 100

/** Milliseconds until a handler counts as failed, and until the last events are given up when the service closes. */
const HANDLER_LIMIT = 10_000
const CLOSING_LIMIT = 5_000

/** @throws {Error} after `limit` milliseconds; later failures of the work are ignored. */
const within = async (limit: number, work: Promise<unknown>): Promise<void> => {
  if (!(await endsWithin(limit, work))) throw new Error(`not finished after ${limit} ms`)
}

/**
 * Reads the log itself, because only the log has the events of all instances in one order. So an event is passed on after its
 * commit, and a request never waits for a handler.
 */
export class EventFeed {
  readonly #deps: EventFeedDeps
  #after: LogPosition | null = null
  #timer: NodeJS.Timeout | undefined = undefined
  #reading: Promise<void> = Promise.resolve()
  #isFailing = false
  #isClosing = false
  #hasEnded = false

  constructor(deps: EventFeedDeps) {
    this.#deps = deps
  }

  async start(): Promise<void> {
    this.#after = await this.#deps.store.end()
    this.#schedule()
  }

  /** Passes on what is in the log, for at most {@link CLOSING_LIMIT}. Call it after the last write, before the store closes. */
  async close(): Promise<void> {
    if (this.#after === null) return
    this.#isClosing = true
    clearTimeout(this.#timer)
    try {
      await within(
        CLOSING_LIMIT,
        this.#reading.then(() => this.#read()),
      )
    } catch (error) {
      this.#deps.onFailure(error, 'the last events were not handled before the service closed')
    }
    this.#hasEnded = true
  }

  #schedule(): void {
    const start = (): void => {
      this.#reading = this.#read().finally(() => {
        if (!this.#isClosing) this.#schedule()
      })
    }
    this.#timer = setTimeout(start, INTERVAL).unref()
  }

  /** Never fails: what could not be read is read the next time. */
  async #read(): Promise<void> {
    try {
      while (await this.#readPage()) await nextRound()
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing) this.#deps.onFailure(error, 'the events of the audit log could not be read')
      this.#isFailing = true
    }
  }

  async #readPage(): Promise<boolean> {
    const { events, next } = await this.#deps.store.follow({ filter: {}, after: this.#after, limit: PAGE })
    for (const event of events) {
      if (this.#hasEnded) return false
      await this.#handle(event)
    }
    this.#after = next
    return events.length === PAGE
  }

  async #handle(event: AuditEvent<string | null>): Promise<void> {
    const { handler, onFailure } = this.#deps
    try {
      await within(HANDLER_LIMIT, Promise.resolve(handler(serializeEvent(event))))
    } catch (error) {
      onFailure(error, `the handler of the event ${event.type} failed`)
    }
  }
}
