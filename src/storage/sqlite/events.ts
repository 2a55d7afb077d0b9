/** The audit log's lists, which never hold the event loop for long. */

import {
  type EventFilter,
  type EventQuery,
  type Followed,
  type FollowQuery,
  isLater,
  LOG_START,
  type LogPlace,
} from '../../audit-log/audit-log.ts'
import type { AuditEvent } from '../../audit-log/event.ts'
import { eventsQuery, filteredEvents } from '../event-queries.ts'
import { type EventRow, toEvent } from '../rows.ts'
import { queries } from './queries.ts'
import type { Reader } from './reader.ts'
import type { Task } from './time-slicer.ts'

/** Rows of a user that are looked through at a time for a rare type: about a millisecond. */
const SLICE = 500

/** An index leads to the events of a user, or of a type. For both at once the user's are looked through in slices. */
export function* eventPage(reader: Reader, query: EventQuery): Task<readonly AuditEvent[]> {
  const { type, ...filter } = query.filter
  const read = (part: EventQuery) => reader.all(eventsQuery(queries.selectFrom('events'), part)).map(toEvent)
  if (type === undefined || filter.userId === undefined) return read(query)
  const page: AuditEvent[] = []
  let beforeId = query.beforeId
  for (;;) {
    const slice = read({ filter, beforeId, limit: SLICE })
    page.push(...slice.filter(event => event.type === type))
    beforeId = slice.at(-1)?.id ?? null
    if (slice.length < SLICE || page.length >= query.limit) return page.slice(0, query.limit)
    yield
  }
}

export const FIRST = 'SELECT position, id FROM events ORDER BY position LIMIT 1'
export const LAST = 'SELECT position, id FROM events ORDER BY position DESC LIMIT 1'

interface LogPart {
  readonly filter: EventFilter
  /** Positions; the second one is included. */
  readonly after: number
  readonly upTo: number
  readonly limit: number
}

/** In the order of the table, or of an index by user or type, which ends in positions. */
export const logPart = ({ filter, after, upTo, limit }: LogPart) =>
  filteredEvents(queries.selectFrom('events'), filter)
    .where('position', '>', after)
    .where('position', '<=', upTo)
    .selectAll('events')
    .orderBy('position')
    .limit(limit)

/** Positions are given while nobody else writes: what is visible is complete up to the last event. */
export const logEnd = (reader: Reader): LogPlace => reader.get<LogPlace>(LAST) ?? LOG_START

/** Positions that are looked through at a time for what no index leads to: one to two milliseconds where all have events. */
const POSITIONS = 5_000

/** Whether an index by position, by user or by type has nothing but what a filter asks for. */
const isIndexed = ({ userId, type, after, before }: FollowQuery['filter']): boolean =>
  after === undefined && before === undefined && (userId === undefined || type === undefined)

export function* follow(reader: Reader, { filter, after, limit }: FollowQuery): Task<Followed> {
  const end = logEnd(reader)
  if (after !== null && !isLater(end, after)) return { events: [], next: after }
  const first = reader.get<LogPlace>(FIRST)?.position ?? 0
  const rows: EventRow[] = []
  let from = Math.max(after?.position ?? LOG_START.position, first - 1)
  for (;;) {
    const upTo = isIndexed(filter) ? end.position : Math.min(end.position, from + POSITIONS)
    rows.push(...reader.all(logPart({ filter, after: from, upTo, limit: limit - rows.length })))
    const last = rows.at(-1)
    if (rows.length === limit && last)
      return { events: rows.map(toEvent), next: { position: last.position, id: last.id } }
    if (upTo === end.position) return { events: rows.map(toEvent), next: end }
    from = upTo
    yield
  }
}
