/** The audit log's writes: each in the transaction of the change that it tells of. */
import type { AuditEvent } from '../../users/event.ts'
import { EVENT_COLUMNS, eventColumns } from '../event-rows.ts'
import { CHANNEL } from './change-feed.ts'
import type { Statement } from './database.ts'
import { parameters, valuesOf } from './parameters.ts'

/** In the order of {@link EVENT_COLUMNS}. */
export const eventValues = (event: AuditEvent): readonly unknown[] =>
  valuesOf(EVENT_COLUMNS, eventColumns(event))

const INSERT_EVENT = `INSERT INTO events (${EVENT_COLUMNS.join(', ')}) VALUES (${parameters(EVENT_COLUMNS, 1)})`

/** An event that changes nothing that anybody remembers. */
export const record = (event: AuditEvent): Statement => ({
  name: 'record',
  text: INSERT_EVENT,
  values: eventValues(event),
})

/** What a transaction runs that has changed a user, so that every instance hears of it. */
export const recordAndNotify = (event: AuditEvent): Statement => ({
  name: 'record-and-notify',
  text: `WITH recorded AS (${INSERT_EVENT} RETURNING user_id)
    SELECT pg_notify($${EVENT_COLUMNS.length + 1}, user_id) FROM recorded`,
  values: [...eventValues(event), CHANNEL],
})
