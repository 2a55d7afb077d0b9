/** The audit log's list, written once for every engine. */
import type { SelectQueryBuilder } from 'kysely'
import type { EventFilter, EventQuery } from '../users/events.ts'
import type { DatabaseSchema } from './schema.ts'

export type EventsQuery = SelectQueryBuilder<DatabaseSchema, 'events', object>

/** The first id that an event of this moment can have: ids are UUIDv7, whose first 48 bits are the moment. */
export const firstIdAt = (moment: number): string => {
  const time = Math.max(0, moment).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`
}

const filtered = (events: EventsQuery, { userId, type, after, before }: EventFilter): EventsQuery => {
  let result = events
  if (userId !== undefined) result = result.where('user_id', '=', userId)
  if (type !== undefined) result = result.where('type', '=', type)
  if (after !== undefined) result = result.where('id', '>=', firstIdAt(after + 1))
  if (before !== undefined) result = result.where('id', '<', firstIdAt(before))
  return result
}

/** One page, newest first: in the order of the primary key, or of an index by user or type that ends in it. */
export const eventsQuery = (events: EventsQuery, { filter, beforeId, limit }: EventQuery) => {
  const rows = filtered(events, filter)
  return (beforeId === null ? rows : rows.where('id', '<', beforeId))
    .selectAll('events')
    .orderBy('id', 'desc')
    .limit(limit)
}
