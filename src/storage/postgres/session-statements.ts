/** The statements by which sessions come and go. */
import type { Session } from '../../auth/session.ts'
import type { AuditEvent } from '../../users/event.ts'
import { EVENT_COLUMNS } from '../event-rows.ts'
import { SESSION_COLUMNS, sessionColumns } from '../rows.ts'
import type { Statement } from './database.ts'
import { eventValues } from './event-operations.ts'
import { parameters, valuesOf } from './parameters.ts'

/** Locks the user: whoever changes them at this moment, and ends their sessions, either comes before or sees this one. */
const FIND_ENABLED = `SELECT key FROM users
    WHERE id = $1 AND ($2::text IS NULL OR password_hash = $2) AND disabled = 0 FOR SHARE`

const INSERT_FOUND = `INSERT INTO sessions (user_key, ${SESSION_COLUMNS.join(', ')})
    SELECT key, ${parameters(SESSION_COLUMNS, 3)} FROM found RETURNING user_key`

const OPEN_SESSION = `WITH found AS (${FIND_ENABLED}), opened AS (${INSERT_FOUND}), recorded AS (
    INSERT INTO events (${EVENT_COLUMNS.join(', ')})
    SELECT ${parameters(EVENT_COLUMNS, 3 + SESSION_COLUMNS.length)} FROM found
  )
  SELECT user_key FROM opened`

const values = (session: Session, verifiedHash: string | null) => [
  session.userId,
  verifiedHash,
  ...valuesOf(SESSION_COLUMNS, sessionColumns(session)),
]

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
  text: `WITH found AS (${FIND_ENABLED}) ${INSERT_FOUND}`,
  values: values(session, null),
})

export const END_SESSION =
  'DELETE FROM sessions WHERE id = $2 AND user_key = (SELECT key FROM users WHERE id = $1) RETURNING id'

/** Locks in the order in which moments of sessions are noted, so that the two cannot deadlock. */
export const END_SESSIONS = `WITH ended AS (
    SELECT id FROM sessions WHERE user_key = (SELECT key FROM users WHERE id = $1) AND id IS DISTINCT FROM $2::text
    ORDER BY id FOR UPDATE
  )
  DELETE FROM sessions USING ended WHERE sessions.id = ended.id`
