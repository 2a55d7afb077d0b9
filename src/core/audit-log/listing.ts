/** Queries of the audit log, and positions in it. */
import type { AuditEvent } from './event.ts'

/** What the store selects by. */
export interface StoredEventFilter {
  readonly userId?: string
  readonly type?: string
  /** Milliseconds since the epoch; neither is included. */
  readonly after?: number
  readonly before?: number
}

/** No index has the others: events that the store selects are compared one by one. */
export interface EventFilter extends StoredEventFilter {
  /** The address of the client, in canonical form. */
  readonly ip?: string
  /** The id of the actor: a user, an API key or an admin key. */
  readonly actorId?: string
}

type FilteredEvent = Pick<AuditEvent<string | null>, 'userId' | 'type' | 'at' | 'actor'>

export const selects = (
  { userId, type, after, before, ip, actorId }: EventFilter,
  { actor, ...event }: FilteredEvent,
): boolean =>
  (userId === undefined || event.userId === userId) &&
  (type === undefined || event.type === type) &&
  (after === undefined || event.at > after) &&
  (before === undefined || event.at < before) &&
  (ip === undefined || actor.ip === ip) &&
  (actorId === undefined || actor.id === actorId)

export interface EventQuery {
  readonly filter: StoredEventFilter
  /** The id of the last event of the previous page; `null` for the newest. */
  readonly beforeId: string | null
  readonly limit: number
}

/**
 * A position in the log, in the order of visibility: events that become visible later have later positions. Events with the
 * same number became visible together and are ordered by id.
 */
export interface LogPosition {
  readonly position: number
  readonly id: string
}

export interface FollowQuery {
  readonly filter: StoredEventFilter
  /** `null`: from the oldest event on. */
  readonly after: LogPosition | null
  readonly limit: number
}

export interface FollowPage {
  readonly events: readonly AuditEvent<string | null>[]
  readonly positions: readonly LogPosition[]
  /** Where the next page begins. No matching event lies between the last event and this position. */
  readonly next: LogPosition
}

/** The events behind a follower are counted up to this number, because it takes time in proportion. */
export const COUNTED = 10_000

export const LOG_START: LogPosition = { position: -1, id: '' }

export const isLater = (one: LogPosition, other: LogPosition): boolean =>
  one.position > other.position || (one.position === other.position && one.id > other.id)
