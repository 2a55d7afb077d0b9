/** Statements that write the audit log, each in the transaction of the change that it records. */
import { type AuditEvent, eventAfter } from '../../audit-log/event.ts'
import { EVENT_COLUMNS, eventColumns } from '../rows.ts'
import type { Run, Statement } from './database.ts'
import { parameters, valuesOf } from './parameters.ts'

/** In the order of {@link EVENT_COLUMNS}. */
export const eventValues = (event: AuditEvent): readonly unknown[] =>
  valuesOf(EVENT_COLUMNS, eventColumns(event))

const INSERT_EVENT = `INSERT INTO events (${EVENT_COLUMNS.join(', ')}) VALUES (${parameters(EVENT_COLUMNS, 1)})`

/** Records an event in a transaction that has locked its user. */
export const record = (event: AuditEvent): Statement => ({
  name: 'record',
  text: INSERT_EVENT,
  values: eventValues(event),
})

/** Records an event without a change, unless its user was removed. A removal waits for this lock. */
export const recordIfUserExists = (event: AuditEvent): Statement => ({
  name: 'record-if-user-exists',
  text: `WITH found AS (SELECT key FROM users WHERE id = $${EVENT_COLUMNS.indexOf('user_id') + 1} FOR KEY SHARE)
    INSERT INTO events (${EVENT_COLUMNS.join(', ')}) SELECT ${parameters(EVENT_COLUMNS, 1)} FROM found`,
  values: eventValues(event),
})

/** Records the event of a removal as the newest of its user, who must be locked. */
export const recordRemoval = async (run: Run, event: AuditEvent): Promise<void> => {
  const [newest] = await run<Pick<AuditEvent, 'id' | 'at'>>({
    text: 'SELECT id, at FROM events WHERE user_id = $1 ORDER BY id DESC LIMIT 1',
    values: [event.userId],
  })
  await run(record(eventAfter(event, newest)))
}
