/** Reads of the audit log, in slices that do not block the event loop. */

import { queryBuilder } from '#storage/sqlite/query-builder'
import type { Reader } from '#storage/sqlite/reader'
import type { SlicedTask } from '#storage/sqlite/time-slicer'
import type { DatabaseSchema } from '../store/tables.ts'
import type { AuditEvent } from './event.ts'
import { eventsQuery, filteredEvents } from './event-queries.ts'
import { type EventRow, toEvent, toPosition } from './event-rows.ts'
import {
  type EventQuery,
  type FollowPage,
  type FollowQuery,
  isLater,
  LOG_START,
  type LogPosition,
  type StoredEventFilter,
} from './listing.ts'

const queries = queryBuilder<DatabaseSchema>()

/** Rows of a user that one slice filters by type, in about a millisecond. */
const SLICE_ROWS = 500

/** One page, newest first. There are indexes by user and by type; for both at once, the user's events are filtered in slices. */
export function* listEvents(
  reader: Reader,
  query: EventQuery,
): SlicedTask<readonly AuditEvent<string | null>[]> {
  const { type, ...filter } = query.filter
  const read = (page: EventQuery) => reader.all(eventsQuery(queries.selectFrom('events'), page)).map(toEvent)
  if (type === undefined || filter.userId === undefined) return read(query)
  const page: AuditEvent<string | null>[] = []
  let beforeId = query.beforeId
  for (;;) {
    const slice = read({ filter, beforeId, limit: SLICE_ROWS })
    page.push(...slice.filter(event => event.type === type))
    beforeId = slice.at(-1)?.id ?? null
    if (slice.length < SLICE_ROWS || page.length >= query.limit) return page.slice(0, query.limit)
    yield
  }
}

export const SELECT_FIRST_POSITION = 'SELECT position, id FROM events ORDER BY position LIMIT 1'
export const SELECT_LAST_POSITION = 'SELECT position, id FROM events ORDER BY position DESC LIMIT 1'

interface PositionRange {
  readonly filter: StoredEventFilter
  /** Positions: `after` is excluded, `upTo` included. */
  readonly after: number
  readonly upTo: number
  readonly limit: number
}

/** Events in the order of positions, read from the table or from an index by user or type: both have this order. */
export const positionRangeQuery = ({ filter, after, upTo, limit }: PositionRange) =>
  filteredEvents(queries.selectFrom('events'), filter)
    .where('position', '>', after)
    .where('position', '<=', upTo)
    .selectAll('events')
    .orderBy('position')
    .limit(limit)

/** SQLite has one writer at a time, so positions are in the order of commits, and the log is complete up to its last event. */
export const logEnd = (reader: Reader): LogPosition =>
  reader.get<LogPosition>(SELECT_LAST_POSITION) ?? LOG_START

/** Positions that one slice examines when no index serves the filter: one to two milliseconds if all of them have events. */
const SLICE_POSITIONS = 5_000

/** Whether the index by position, by user or by type contains exactly the matches of a filter. */
const isIndexed = ({ userId, type, after, before }: FollowQuery['filter']): boolean =>
  after === undefined && before === undefined && (userId === undefined || type === undefined)

const pageOf = (rows: readonly EventRow[], next: LogPosition): FollowPage => ({
  events: rows.map(toEvent),
  positions: rows.map(toPosition),
  next,
})

/** Events after a position in the log, oldest first. */
export function* followEvents(reader: Reader, { filter, after, limit }: FollowQuery): SlicedTask<FollowPage> {
  const end = logEnd(reader)
  if (after !== null && !isLater(end, after)) return { events: [], positions: [], next: after }
  const first = reader.get<LogPosition>(SELECT_FIRST_POSITION)?.position ?? 0
  const rows: EventRow[] = []
  let from = Math.max(after?.position ?? LOG_START.position, first - 1)
  for (;;) {
    const upTo = isIndexed(filter) ? end.position : Math.min(end.position, from + SLICE_POSITIONS)
    rows.push(...reader.all(positionRangeQuery({ filter, after: from, upTo, limit: limit - rows.length })))
    const last = rows.at(-1)
    if (rows.length === limit && last) return pageOf(rows, toPosition(last))
    if (upTo === end.position) return pageOf(rows, end)
    from = upTo
    yield
  }
}
