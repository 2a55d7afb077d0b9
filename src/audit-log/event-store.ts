/** The store of events, and positions in it. */
import type { MaybePromise } from '../users/user-store.ts'
import type { AuditEvent, EventType } from './event.ts'

export interface EventFilter {
  readonly userId?: string
  readonly type?: EventType
  /** Milliseconds since the epoch; neither is included. */
  readonly after?: number
  readonly before?: number
}

export interface EventQuery {
  readonly filter: EventFilter
  /** The id of the last event of the previous page; `null` for the newest. */
  readonly beforeId: string | null
  readonly limit: number
}

/**
 * A place in the log in the order of visibility: events that become visible later have later places. Events with one
 * position became visible together and are ordered by id.
 */
export interface LogPlace {
  readonly position: number
  readonly id: string
}

export interface FollowQuery {
  readonly filter: EventFilter
  /** `null`: from the oldest event on. */
  readonly after: LogPlace | null
  readonly limit: number
}

export interface Followed {
  readonly events: readonly AuditEvent[]
  /** Where the next page begins. No matching event lies between the last event and this place. */
  readonly next: LogPlace
}

export interface EventStore {
  /** The kind of the store's positions. Positions of another kind are invalid in this store. */
  readonly positions: string
  /** Stores an event without another change, unless its user is deleted: no event follows a deletion. */
  record(event: AuditEvent): Promise<void>
  /** Newest first. */
  list(query: EventQuery): MaybePromise<readonly AuditEvent[]>
  /** In the order of visibility. */
  follow(query: FollowQuery): MaybePromise<Followed>
  /** The place of the last visible event. */
  end(): MaybePromise<LogPlace>
}

/** Before every event. */
export const LOG_START: LogPlace = { position: -1, id: '' }

export const isLater = (one: LogPlace, other: LogPlace): boolean =>
  one.position > other.position || (one.position === other.position && one.id > other.id)
