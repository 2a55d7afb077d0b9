/** The audit log's writes: each in the transaction of the change that it tells of. */
import { type AuditEvent, eventAfter } from '../../audit-log/event.ts'
import { EVENT_COLUMNS, eventColumns } from '../events.ts'
import type { Run, Statement } from './database.ts'
import { CHANNEL } from './invalidation-feed.ts'
import { parameters, valuesOf } from './queries.ts'

/** In the order of {@link EVENT_COLUMNS}. */
export const eventValues = (event: AuditEvent): readonly unknown[] =>
  valuesOf(EVENT_COLUMNS, eventColumns(event))

const INSERT_EVENT = `INSERT INTO events (${EVENT_COLUMNS.join(', ')}) VALUES (${parameters(EVENT_COLUMNS, 1)})`

/** An event that changes nothing that anybody remembers, in a transaction that has locked the user. */
export const record = (event: AuditEvent): Statement => ({
  name: 'record',
  text: INSERT_EVENT,
  values: eventValues(event),
})

/** An event that comes with no change, unless its user is gone: the lock is the one that a removal waits for. */
export const recordOfUser = (event: AuditEvent): Statement => ({
  name: 'record-of-user',
  text: `WITH found AS (SELECT key FROM users WHERE id = $${EVENT_COLUMNS.indexOf('user_id') + 1} FOR KEY SHARE)
    INSERT INTO events (${EVENT_COLUMNS.join(', ')}) SELECT ${parameters(EVENT_COLUMNS, 1)} FROM found`,
  values: eventValues(event),
})

/** What a transaction runs that has changed a user, so that every instance hears of it. */
export const recordAndNotify = (event: AuditEvent): Statement => ({
  name: 'record-and-notify',
  text: `WITH recorded AS (${INSERT_EVENT} RETURNING user_id)
    SELECT pg_notify($${EVENT_COLUMNS.length + 1}, user_id) FROM recorded`,
  values: [...eventValues(event), CHANNEL],
})

/** Keeps a removal's event as the newest of its user's, and tells every instance. The user has to be locked by then. */
export const recordRemoval = async (run: Run, event: AuditEvent): Promise<void> => {
  const [newest] = await run<Pick<AuditEvent, 'id' | 'at'>>({
    text: 'SELECT id, at FROM events WHERE user_id = $1 ORDER BY id DESC LIMIT 1',
    values: [event.userId],
  })
  await run(recordAndNotify(eventAfter(event, newest)))
}
