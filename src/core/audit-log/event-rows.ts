/** The rows of events, for both engines. Statements list columns in the order given here. */
import type { EventsTable } from '../store/tables.ts'
import type { AuditEvent } from './event.ts'
import type { LogPosition } from './listing.ts'

/** An event without its position, which the store assigns. */
export type EventColumns = Omit<EventsTable, 'position'>

export type EventRow = EventColumns & { readonly position: number }

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

export const eventColumns = ({
  id,
  at,
  type,
  actor,
  userId,
  details,
}: AuditEvent<string | null>): EventColumns => ({
  id,
  at,
  type,
  actor_type: actor.type,
  actor_id: actor.id,
  user_id: userId,
  ip: actor.ip,
  details: details && JSON.stringify(details),
})

export const toPosition = ({ position, id }: EventRow): LogPosition => ({ position, id })

export const toEvent = (row: EventColumns): AuditEvent<string | null> => ({
  id: row.id,
  at: row.at,
  type: row.type,
  actor: { type: row.actor_type, id: row.actor_id, ip: row.ip },
  userId: row.user_id,
  details: row.details === null ? null : JSON.parse(row.details),
})
