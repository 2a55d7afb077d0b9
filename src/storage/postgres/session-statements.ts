/** The statements by which sessions come and go. */

import type { AuditEvent } from '../../audit-log/event.ts'
import type { Session } from '../../auth/session.ts'
import { EVENT_COLUMNS } from '../events.ts'
import { SESSION_COLUMNS, sessionColumns } from '../rows.ts'
import type { Statement } from './database.ts'
import { eventValues } from './event-operations.ts'
import { parameters, valuesOf } from './queries.ts'
import { lockedColumns } from './user-locks.ts'

/** Locks the user: whoever changes them at this timestamp, and ends their sessions, either comes before or sees this one. */
const FIND = `SELECT key, ${lockedColumns(2)} FROM users WHERE id = $1 FOR SHARE`

const INSERT_FOUND = `INSERT INTO sessions (user_key, ${SESSION_COLUMNS.join(', ')})
    SELECT key, ${parameters(SESSION_COLUMNS, 3)} FROM found WHERE disabled = 0 AND verified`

const OPEN_SESSION = `WITH found AS (${FIND}), opened AS (${INSERT_FOUND}), recorded AS (
    INSERT INTO events (${EVENT_COLUMNS.join(', ')})
    SELECT ${parameters(EVENT_COLUMNS, 3 + SESSION_COLUMNS.length)} FROM found WHERE disabled = 0 AND verified
  )
  SELECT disabled, verified FROM found`

const values = (session: Session, verifiedHash: string | null) => [
  session.userId,
  verifiedHash,
  ...valuesOf(SESSION_COLUMNS, sessionColumns(session)),
]

/** Gives the `LockedUser`, if there is one. */
export const openSessionStatement = (
  session: Session,
  verifiedHash: string | null,
  event: AuditEvent,
): Statement => ({
  name: 'open-session',
  text: OPEN_SESSION,
  values: [...values(session, verifiedHash), ...eventValues(event)],
})

/** As part of a change that has an event of its own. */
export const addSessionStatement = (session: Session): Statement => ({
  name: 'add-session',
  text: `WITH found AS (${FIND}) ${INSERT_FOUND}`,
  values: values(session, null),
})

/** Locks the user first, as all do who end sessions. Gives the `LockedUser`, and whether there was such a session. */
export const END_SESSION = `WITH found AS (SELECT key, disabled FROM users WHERE id = $1 FOR SHARE), ended AS (
    DELETE FROM sessions USING found WHERE id = $2 AND user_key = found.key AND disabled = 0 RETURNING id
  )
  SELECT disabled, true AS verified, EXISTS (SELECT FROM ended) AS ended FROM found`

/** Locks in the order in which timestamps of sessions are noted, so that the two cannot deadlock. */
export const END_SESSIONS = `WITH ended AS (
    SELECT id FROM sessions WHERE user_key = (SELECT key FROM users WHERE id = $1) AND id IS DISTINCT FROM $2::text
    ORDER BY id FOR UPDATE
  )
  DELETE FROM sessions USING ended WHERE sessions.id = ended.id`
