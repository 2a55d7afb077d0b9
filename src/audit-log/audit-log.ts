/**
 * The audit log as administrators read it, by keyset pagination: newest first by ids, whose order is that of time, or as it
 * grows, for those who follow it.
 */
import { ServiceError } from '../errors.ts'
import { ID } from '../ids.ts'
import type { MaybePromise } from '../users/user-store.ts'
import type { AuditEvent, EventType } from './event.ts'

/** Newest first; or in the order in which events became visible, which timestamps come close to. */
export const EVENT_SORTS = ['-at', 'at'] as const
export type EventSort = (typeof EVENT_SORTS)[number]

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

/**
 * A place in the log as it grows. Whatever becomes visible later comes after all that was visible before: events of one
 * position became visible together, and are in the order of their ids.
 */
export interface LogPlace {
  readonly position: number
  readonly id: string
}

export interface FollowQuery {
  readonly filter: EventFilter
  /** `null` for the oldest event that is kept. */
  readonly after: LogPlace | null
  readonly limit: number
}

export interface Followed {
  readonly events: readonly AuditEvent[]
  /** Where to go on; nothing that matches the filter lies between it and the last of the events. */
  readonly next: LogPlace
}

export interface EventStore {
  /** What positions are; those of another kind of store mean nothing here. */
  readonly positions: string
  /** Adds an event that comes with no other change, unless its user is gone: nothing comes after a removal. */
  record(event: AuditEvent): Promise<void>
  /** Newest first. */
  list(query: EventQuery): MaybePromise<readonly AuditEvent[]>
  /** As the log grows. */
  follow(query: FollowQuery): MaybePromise<Followed>
  /** The place of the last event that can be read. */
  end(): MaybePromise<LogPlace>
}

/** Before every event. */
export const LOG_START: LogPlace = { position: -1, id: '' }

/** Whether a place comes after another. */
export const isLater = (one: LogPlace, other: LogPlace): boolean =>
  one.position > other.position || (one.position === other.position && one.id > other.id)

export interface EventPage {
  readonly events: readonly AuditEvent[]
  /** Opaque; `null` on the last page of those that are newest first. */
  readonly nextCursor: string | null
}

export interface EventPageRequest {
  readonly filter: EventFilter
  readonly limit: number
  readonly cursor?: string | undefined
  readonly sort: EventSort
}

/** A cursor of the log as it grows: what positions are, a position, and an id or nothing. */
const PLACE = /^at ([a-z]+) (-?\d{1,15}) (.*)$/

const encode = (text: string): string => Buffer.from(text).toString('base64url')
const decode = (cursor: string): string => Buffer.from(cursor, 'base64url').toString('utf8')

export class Events {
  readonly #store: EventStore

  constructor(store: EventStore) {
    this.#store = store
  }

  /** @throws {ServiceError} `badCursor`, also for one of the other sort */
  async list(request: EventPageRequest): Promise<EventPage> {
    return request.sort === 'at' ? this.#follow(request) : this.#newestFirst(request)
  }

  /** The cursor by which what becomes visible from now on is read, with `sort` `at`. */
  async end(): Promise<string> {
    return this.#encode(await this.#store.end())
  }

  async #newestFirst({ filter, limit, cursor }: EventPageRequest): Promise<EventPage> {
    const beforeId = cursor === undefined ? null : decode(cursor)
    if (beforeId !== null && !ID.test(beforeId)) throw new ServiceError('badCursor')
    // One more than asked for tells whether a next page exists.
    const found = await this.#store.list({ filter, beforeId, limit: limit + 1 })
    const events = found.slice(0, limit)
    const last = events.at(-1)
    const more = found.length > limit && last !== undefined
    return { events, nextCursor: more ? encode(last.id) : null }
  }

  async #follow({ filter, limit, cursor }: EventPageRequest): Promise<EventPage> {
    const after = cursor === undefined ? null : this.#decode(cursor)
    const { events, next } = await this.#store.follow({ filter, after, limit })
    return { events, nextCursor: this.#encode(next) }
  }

  #encode({ position, id }: LogPlace): string {
    return encode(`at ${this.#store.positions} ${position} ${id}`)
  }

  #decode(cursor: string): LogPlace {
    const [, positions, position, id = ''] = PLACE.exec(decode(cursor)) ?? []
    if (positions !== this.#store.positions || (id !== '' && !ID.test(id)))
      throw new ServiceError('badCursor')
    return { position: Number(position), id }
  }
}
