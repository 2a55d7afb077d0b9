/** Lists of the audit log. */
import { sql } from 'kysely'
import type { Reader, Statement } from '#storage/postgres/database'
import { queryBuilder, statement } from '#storage/postgres/query-builder'
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

export const eventsStatement = (query: EventQuery): Statement =>
  statement(eventsQuery(queries.selectFrom('events'), query))

export const listEvents = async (
  reader: Reader,
  query: EventQuery,
): Promise<readonly AuditEvent<string | null>[]> =>
  (await reader.read<EventRow>(eventsStatement(query))).map(toEvent)

interface PositionRange {
  readonly filter: StoredEventFilter
  readonly after: LogPosition
  /** Inclusive. */
  readonly upTo: LogPosition
  readonly limit: number
}

/** Events in a part of the log, along an index by position, by user or by type. */
export const positionRangeStatement = ({ filter, after, upTo, limit }: PositionRange): Statement =>
  statement(
    filteredEvents(queries.selectFrom('events'), filter)
      .where(sql<boolean>`(position, id) > (${after.position}, ${after.id})`)
      .where(sql<boolean>`(position, id) <= (${upTo.position}, ${upTo.id})`)
      .selectAll('events')
      .orderBy('position')
      .orderBy('id')
      .limit(limit),
  )

/**
 * The last event before which no event can appear any more: every transaction of this database with a lower number had ended when
 * the statement began. A transaction that runs in another database of the server writes no event: it is left out if a backend
 * there is seen with it, later than the snapshot. One of which no backend is seen may have committed here in between.
 */
export const LOG_END: Statement = {
  name: 'log-end',
  text: `SELECT position, id FROM events
    WHERE position < event_shift() + (
      SELECT coalesce(min(running::text::bigint), pg_snapshot_xmax(pg_current_snapshot())::text::bigint)
      FROM pg_snapshot_xip(pg_current_snapshot()) AS running
      WHERE NOT EXISTS (
        SELECT FROM pg_stat_activity WHERE backend_xid = running::xid
        AND datid <> (SELECT oid FROM pg_database WHERE datname = current_database())
      )
    )
    ORDER BY position DESC, id DESC LIMIT 1`,
  values: [],
}

export const logEnd = async (reader: Reader): Promise<LogPosition> => {
  const [last] = await reader.read<LogPosition>(LOG_END)
  return last ?? LOG_START
}

/** Events after a position in the log, oldest first. Both statements must reach the same server, in this order. */
export const followEvents = async (reader: Reader, query: FollowQuery): Promise<FollowPage> => {
  const { filter, limit } = query
  const after = query.after ?? LOG_START
  const upTo = await logEnd(reader)
  if (!isLater(upTo, after)) return { events: [], positions: [], next: after }
  const rows = await reader.read<EventRow>(positionRangeStatement({ filter, after, upTo, limit }))
  const last = rows.at(-1)
  const next = rows.length === limit && last ? toPosition(last) : upTo
  return { events: rows.map(toEvent), positions: rows.map(toPosition), next }
}
