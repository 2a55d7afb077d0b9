/** Queries of the audit log, and positions in it. */
import type { AuditEvent } from './event.ts'

export interface EventFilter {
  readonly userId?: string
  readonly type?: string
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
 * A position in the log, in the order of visibility: events that become visible later have later positions. Events with the
 * same number became visible together and are ordered by id.
 */
export interface LogPosition {
  readonly position: number
  readonly id: string
}

export interface FollowQuery {
  readonly filter: EventFilter
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
