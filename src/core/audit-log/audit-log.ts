/** Pages of the audit log, by keyset pagination: newest first by id, or oldest first by position, to follow the log. */
import { ServiceError } from '#base/errors'
import { ID } from '#base/ids'
import { cursorAt, idOfCursor, pageOf } from '#base/pagination'
import type { EventStore } from '../store/store.ts'
import type { AuditEvent } from './event.ts'
import { type EventFilter, type LogPosition, selects } from './listing.ts'

/** Newest first; or in the order in which events became visible, which is close to the order of time. */
export const EVENT_SORTS = ['-at', 'at'] as const
export type EventSort = (typeof EVENT_SORTS)[number]

export interface EventPage {
  readonly events: readonly AuditEvent<string | null>[]
  /** Opaque; `null` on the last page with the newest first. */
  readonly nextCursor: string | null
}

export interface EventPageRequest {
  readonly filter: EventFilter
  readonly limit: number
  readonly cursor?: string | undefined
  readonly sort: EventSort
}

/** A cursor for `sort` `at`: the kind of positions, a position, and an id or nothing. */
const CURSOR = /^at ([a-z]+) (-?\d{1,15}) (.*)$/

const encode = (text: string): string => Buffer.from(text).toString('base64url')
const decode = (cursor: string): string => Buffer.from(cursor, 'base64url').toString('utf8')

/** Events that are compared one by one at a time, and for one page. */
const SLICE = 500
const MAX_COMPARED = 10_000

export class AuditLog {
  readonly #store: EventStore

  constructor(store: EventStore) {
    this.#store = store
  }

  /** @throws {ServiceError} `badCursor`, also for a cursor of the other sort */
  async list(request: EventPageRequest): Promise<EventPage> {
    return request.sort === 'at' ? this.#follow(request) : this.#newestFirst(request)
  }

  /** The cursor behind the last visible event, for `sort` `at`. */
  async end(): Promise<string> {
    return this.cursorOf(await this.#store.end())
  }

  /** The cursor of a position, for `sort` `at`. */
  cursorOf({ position, id }: LogPosition): string {
    return encode(`at ${this.#store.positionKind} ${position} ${id}`)
  }

  positionOf(cursor: string): LogPosition {
    const [, positionKind, position, id = ''] = CURSOR.exec(decode(cursor)) ?? []
    if (positionKind !== this.#store.positionKind || (id !== '' && !ID.test(id)))
      throw new ServiceError('badCursor')
    return { position: Number(position), id }
  }

  async #newestFirst(request: EventPageRequest): Promise<EventPage> {
    const { filter, limit, cursor } = request
    if (filter.ip !== undefined || filter.actorId !== undefined) return this.#compared(request)
    const found = await this.#store.list({ filter, beforeId: idOfCursor(cursor), limit: limit + 1 })
    const { results, nextCursor } = pageOf(found, limit)
    return { events: results, nextCursor }
  }

  /** A page of events that no index finds. It has fewer than `limit`, or none, where {@link MAX_COMPARED} others lie between. */
  async #compared({ filter, limit, cursor }: EventPageRequest): Promise<EventPage> {
    const found: AuditEvent<string | null>[] = []
    let beforeId = idOfCursor(cursor)
    for (let compared = 0; compared < MAX_COMPARED; compared += SLICE) {
      const slice = await this.#store.list({ filter, beforeId, limit: SLICE })
      found.push(...slice.filter(event => selects(filter, event)))
      if (found.length > limit || slice.length < SLICE) {
        const { results, nextCursor } = pageOf(found, limit)
        return { events: results, nextCursor }
      }
      beforeId = slice.at(-1)?.id ?? null
    }
    return { events: found, nextCursor: beforeId === null ? null : cursorAt({ id: beforeId }) }
  }

  async #follow({ filter, limit, cursor }: EventPageRequest): Promise<EventPage> {
    const after = cursor === undefined ? null : this.positionOf(cursor)
    const { events: followed, next } = await this.#store.follow({ filter, after, limit })
    const events = followed.filter(event => selects(filter, event))
    return { events, nextCursor: this.cursorOf(next) }
  }
}
