/** The audit log's writes: each in the transaction of the change that it tells of. */
import type { AuditEvent } from '../../users/event.ts'
import { EVENT_COLUMNS, eventColumns } from '../event-rows.ts'
import type { Connection } from './database.ts'
import { parameters } from './parameters.ts'

/** Prepares what keeps an event. */
export const prepareRecord = (db: Connection) => {
  const insert = db.prepare(
    `INSERT INTO events (${EVENT_COLUMNS.join(', ')}) VALUES (${parameters(EVENT_COLUMNS)})`,
  )
  return (event: AuditEvent): void => {
    insert.run(eventColumns(event))
  }
}
