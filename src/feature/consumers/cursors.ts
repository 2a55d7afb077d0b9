/** How far each consumer is, and moving one. `consumers.ts` runs the consumers of all features. */

import { firstIdAt } from '#base/ids'
import { COUNTED, LOG_START, type LogPosition } from '#core/audit-log/listing'
import type { DepsOf } from '../declaration.ts'
import type { StoredConsumer, storedConsumers } from './stored-consumers.ts'

/** A consumer as an operator sees it. */
export interface ConsumerState {
  readonly name: string
  /** Events that wait, at most {@link COUNTED}. */
  readonly waiting: number
  /** Attempts for the next event that failed. */
  readonly failures: number
  /** The id of the event that its handler fails for, and the error. */
  readonly failedEvent: string | null
  readonly error: string | null
  /** When the cursor moved, or an attempt failed: milliseconds since the epoch. */
  readonly updatedAt: number
}

type ConsumerCursorsDeps = Pick<DepsOf<typeof storedConsumers>, 'store' | 'eventLog' | 'clock'>

/** Where a cursor is set: the oldest event of the log, its end, or about a time in milliseconds since the epoch. */
export type CursorTarget = 'start' | 'end' | number

export class ConsumerCursors {
  readonly #deps: ConsumerCursorsDeps

  constructor(deps: ConsumerCursorsDeps) {
    this.#deps = deps
  }

  /** Lists the consumers of this version, and of earlier ones. */
  async list(): Promise<readonly ConsumerState[]> {
    const consumers = await this.#deps.store.listConsumers()
    return Promise.all(consumers.map(consumer => this.#stateOf(consumer)))
  }

  /**
   * Sets a cursor. Events after it are handled, those that were handled before again.
   * @returns whether there is the consumer.
   */
  async reset(name: string, target: CursorTarget): Promise<boolean> {
    const { store, eventLog, clock } = this.#deps
    return store.setConsumer(name, eventLog.positionKind, await this.#positionOf(target), clock())
  }

  /** Moves a cursor behind the event that its handler fails for. @returns the id of the event; `null` if it fails for none. */
  async skip(name: string): Promise<string | null> {
    const { store, clock } = this.#deps
    const found = await store.findConsumer(name)
    if (found === undefined || found.failures === 0) return null
    const { positionKind, failedPosition: position, failedEventId: id } = found
    return (await store.setConsumer(name, positionKind, { position, id }, clock())) ? id : null
  }

  async #positionOf(target: CursorTarget): Promise<LogPosition> {
    const { eventLog } = this.#deps
    if (target === 'start') return LOG_START
    if (target === 'end') return eventLog.end()
    return (await eventLog.findPositionBefore(firstIdAt(target))) ?? eventLog.end()
  }

  async #stateOf(consumer: StoredConsumer): Promise<ConsumerState> {
    const { name, position, eventId: id, failures, failedEventId, error, updatedAt } = consumer
    const waiting = await this.#deps.eventLog.countAfter({ position, id }, COUNTED)
    const isFailing = failures > 0
    return {
      ...{ name, waiting, failures, updatedAt },
      failedEvent: isFailing ? failedEventId : null,
      error: isFailing ? error : null,
    }
  }
}
