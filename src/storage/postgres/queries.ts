/** Reads by a key, and their rows. */
import type { FoundSession } from '../../auth/session-store.ts'
import { SESSION_COLUMNS, selectEmailToken, selectUser, toSession, toUser, type UserRow } from '../rows.ts'

export interface FoundRow extends UserRow {
  key: number
  session_id: string
  opened_at: number
  expires_at: number
  session_last_request_at: number
  ip: string | null
  user_agent: string | null
  impersonated_by: string | null
}

export const SELECT_BY_ID = `${selectUser()} WHERE id = $1`
export const SELECT_BY_EMAIL = `${selectUser('password_hash')} WHERE email = $1`
export const SELECT_SESSION = `${selectUser('key', 'session.*')} JOIN (
    SELECT id AS session_id, user_key, created_at AS opened_at, expires_at, last_request_at AS session_last_request_at,
           ip, user_agent, impersonated_by
    FROM sessions WHERE id = $1
  ) AS session ON session.user_key = users.key`

export const SELECT_EMAIL_TOKEN = `${selectEmailToken} WHERE digest = $1 AND expires_at > $2`

export const LIST_SESSIONS = `SELECT ${SESSION_COLUMNS.join(', ')} FROM sessions
  WHERE user_key = (SELECT key FROM users WHERE id = $1) AND expires_at > $2 AND last_request_at > $3
  ORDER BY created_at DESC, id DESC LIMIT $4`

export const toFound = (row: FoundRow): FoundSession => ({
  session: toSession(
    { ...row, id: row.session_id, created_at: row.opened_at, last_request_at: row.session_last_request_at },
    row.id,
  ),
  user: toUser(row),
  userKey: row.key,
})
