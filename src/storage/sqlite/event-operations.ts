/** Inserts into the audit log, each in the transaction of the change that the event records. */
import { type AuditEvent, eventAfter } from '../../audit-log/event.ts'
import { EVENT_COLUMNS, eventColumns } from '../rows.ts'
import type { Connection } from './database.ts'
import { parameters } from './parameters.ts'

const INSERT_EVENT = `INSERT INTO events (${EVENT_COLUMNS.join(', ')})`

export const prepareEventStatements = (db: Connection) => {
  const insert = db.prepare(`${INSERT_EVENT} VALUES (${parameters(EVENT_COLUMNS)})`)
  const insertIfUserExists = db.prepare(
    `${INSERT_EVENT} SELECT ${parameters(EVENT_COLUMNS)} FROM users WHERE users.id = @user_id`,
  )
  const selectNewest = db.prepare<[string], Pick<AuditEvent, 'id' | 'at'>>(
    'SELECT id, at FROM events WHERE user_id = ? ORDER BY id DESC LIMIT 1',
  )
  const record = (event: AuditEvent): void => {
    insert.run(eventColumns(event))
  }

  return {
    record,

    /** Records an event that comes without another change; does nothing when its user does not exist. */
    recordIfUserExists(event: AuditEvent): void {
      insertIfUserExists.run(eventColumns(event))
    },

    /** Records the removal of a user, with an id and timestamp after those of the user's other events. */
    recordRemoval: (event: AuditEvent): void => record(eventAfter(event, selectNewest.get(event.userId))),
  }
}
