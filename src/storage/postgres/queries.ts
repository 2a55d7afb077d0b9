/** Reads by a key, and their rows. */
import type { FoundSession } from '../../auth/session-store.ts'
import { readStatements } from '../read-statements.ts'
import { selectUser, toSession, toUser, type UserRow } from '../rows.ts'

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

export const { SELECT_BY_ID, SELECT_BY_EMAIL, SELECT_EMAIL_TOKEN, LIST_SESSIONS } = readStatements(
  number => `$${number}`,
)

export const SELECT_SESSION = `${selectUser('key', 'session.*')} JOIN (
    SELECT id AS session_id, user_key, created_at AS opened_at, expires_at, last_request_at AS session_last_request_at,
           ip, user_agent, impersonated_by
    FROM sessions WHERE id = $1
  ) AS session ON session.user_key = users.key`

export const toFound = (row: FoundRow): FoundSession => ({
  session: toSession(
    { ...row, id: row.session_id, created_at: row.opened_at, last_request_at: row.session_last_request_at },
    row.id,
  ),
  user: toUser(row),
  userKey: row.key,
})
