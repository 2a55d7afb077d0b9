/** The queries of the audit log, for both engines. */
import type { SelectQueryBuilder } from 'kysely'
import { firstIdAt } from '#base/ids'
import type { DatabaseSchema } from '../store/tables.ts'
import type { EventQuery, StoredEventFilter } from './listing.ts'

export type EventsQuery = SelectQueryBuilder<DatabaseSchema, 'events', object>

export const filteredEvents = (
  events: EventsQuery,
  { userId, type, after, before }: StoredEventFilter,
): EventsQuery => {
  let result = events
  if (userId !== undefined) result = result.where('user_id', '=', userId)
  if (type !== undefined) result = result.where('type', '=', type)
  if (after !== undefined) result = result.where('id', '>=', firstIdAt(after + 1))
  if (before !== undefined) result = result.where('id', '<', firstIdAt(before))
  return result
}

/** One page, newest first, along the primary key or an index by user or type that ends with it. */
export const eventsQuery = (events: EventsQuery, { filter, beforeId, limit }: EventQuery) => {
  const rows = filteredEvents(events, filter)
  return (beforeId === null ? rows : rows.where('id', '<', beforeId))
    .selectAll('events')
    .orderBy('id', 'desc')
    .limit(limit)
}
