/** Rows of the audit log, the same on both engines. */

import type { SelectQueryBuilder } from 'kysely'
import type { EventFilter, EventQuery } from '../audit-log/audit-log.ts'
import type { AuditEvent } from '../audit-log/event.ts'
import { firstIdAt } from '../ids.ts'
import type { DatabaseSchema, EventsTable } from './schema.ts'

/** An event without its position, which the store gives. */
export type EventColumns = Omit<EventsTable, 'position'>

/** An event as the engine returns one. */
export type EventRow = EventColumns & { readonly position: number }

/** In the order in which statements have them. */
export const EVENT_COLUMNS = [
  'id',
  'at',
  'type',
  'actor_type',
  'actor_id',
  'user_id',
  'ip',
  'details',
] as const satisfies readonly (keyof EventColumns)[]

export const eventColumns = ({ id, at, type, actor, userId, details }: AuditEvent): EventColumns => ({
  id,
  at,
  type,
  actor_type: actor.type,
  actor_id: actor.id,
  user_id: userId,
  ip: actor.ip,
  details: details && JSON.stringify(details),
})

export const toEvent = (row: EventColumns): AuditEvent => ({
  id: row.id,
  at: row.at,
  type: row.type,
  actor: { type: row.actor_type, id: row.actor_id, ip: row.ip },
  userId: row.user_id,
  details: row.details === null ? null : JSON.parse(row.details),
})

/** What the audit log's lists have in common on every engine. */

export type EventsQuery = SelectQueryBuilder<DatabaseSchema, 'events', object>

export const filteredEvents = (
  events: EventsQuery,
  { userId, type, after, before }: EventFilter,
): EventsQuery => {
  let result = events
  if (userId !== undefined) result = result.where('user_id', '=', userId)
  if (type !== undefined) result = result.where('type', '=', type)
  if (after !== undefined) result = result.where('id', '>=', firstIdAt(after + 1))
  if (before !== undefined) result = result.where('id', '<', firstIdAt(before))
  return result
}

/** One page, newest first: in the order of the primary key, or of an index by user or type that ends in it. */
export const eventsQuery = (events: EventsQuery, { filter, beforeId, limit }: EventQuery) => {
  const rows = filteredEvents(events, filter)
  return (beforeId === null ? rows : rows.where('id', '<', beforeId))
    .selectAll('events')
    .orderBy('id', 'desc')
    .limit(limit)
}
