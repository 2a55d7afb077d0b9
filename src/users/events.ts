/** The audit log as administrators read it: newest first, by keyset pagination over ids, whose order is that of time. */
import { ServiceError } from '../errors.ts'
import type { AuditEvent, EventType } from './event.ts'
import type { MaybePromise } from './user-store.ts'

export interface EventFilter {
  readonly userId?: string
  readonly type?: EventType
  /** Milliseconds since the epoch, neither of them included. */
  readonly after?: number
  readonly before?: number
}

export interface EventQuery {
  readonly filter: EventFilter
  /** The id of the last event of the page before; `null` for the newest. */
  readonly beforeId: string | null
  readonly limit: number
}

export interface EventStore {
  /** Adds an event that comes with no other change, unless its user is gone: nothing comes after a removal. */
  record(event: AuditEvent): Promise<void>
  /** Newest first. */
  list(query: EventQuery): MaybePromise<readonly AuditEvent[]>
}

export interface EventPage {
  readonly events: readonly AuditEvent[]
  /** Opaque; `null` on the last page. */
  readonly nextCursor: string | null
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export class Events {
  readonly #store: EventStore

  constructor(store: EventStore) {
    this.#store = store
  }

  /** @throws {ServiceError} `badCursor` */
  async list(filter: EventFilter, limit: number, cursor: string | undefined): Promise<EventPage> {
    const beforeId = cursor === undefined ? null : Buffer.from(cursor, 'base64url').toString('utf8')
    if (beforeId !== null && !UUID.test(beforeId)) throw new ServiceError('badCursor')
    // One more than asked for tells whether a next page exists.
    const found = await this.#store.list({ filter, beforeId, limit: limit + 1 })
    const events = found.slice(0, limit)
    const last = events.at(-1)
    const more = found.length > limit && last !== undefined
    return { events, nextCursor: more ? Buffer.from(last.id).toString('base64url') : null }
  }
}
