/** The audit log's writes: each in the transaction of the change that it tells of. */
import { type AuditEvent, eventAfter } from '../../audit-log/event.ts'
import { EVENT_COLUMNS, eventColumns } from '../rows.ts'
import type { Connection } from './database.ts'
import { parameters } from './queries.ts'

const INTO_EVENTS = `INSERT INTO events (${EVENT_COLUMNS.join(', ')})`

/** Prepares what keeps an event. */
export const prepareRecord = (db: Connection) => {
  const insert = db.prepare(`${INTO_EVENTS} VALUES (${parameters(EVENT_COLUMNS)})`)
  return (event: AuditEvent): void => {
    insert.run(eventColumns(event))
  }
}

/** Prepares what keeps an event that comes with no change, unless its user is gone. */
export const prepareRecordOfUser = (db: Connection) => {
  const insert = db.prepare(
    `${INTO_EVENTS} SELECT ${parameters(EVENT_COLUMNS)} FROM users WHERE users.id = @user_id`,
  )
  return (event: AuditEvent): void => {
    insert.run(eventColumns(event))
  }
}

/** Prepares what keeps a removal's event, as the newest of its user's. */
export const prepareRecordRemoval = (db: Connection) => {
  const record = prepareRecord(db)
  const newest = db.prepare<[string], Pick<AuditEvent, 'id' | 'at'>>(
    'SELECT id, at FROM events WHERE user_id = ? ORDER BY id DESC LIMIT 1',
  )
  return (event: AuditEvent): void => record(eventAfter(event, newest.get(event.userId)))
}
