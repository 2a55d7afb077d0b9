/** Rows of the audit log, the same on both engines. */
import type { AuditEvent } from '../audit-log/event.ts'
import type { EventsTable } from './schema.ts'

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
