/** The statements of every write. */
import type { Session } from '../../auth/session.ts'
import type { UserChanges } from '../../users/user.ts'
import type { UpdateOptions } from '../../users/user-store.ts'
import { changedColumns } from '../rows.ts'
import type { Statement } from './database.ts'

export const ADD_USER = `WITH added AS (
    INSERT INTO users (id, email, password_hash, first_name, last_name, first_name_key, last_name_key,
                       email_verified, disabled, created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    ON CONFLICT (email) DO NOTHING
    RETURNING key
  )
  INSERT INTO sessions (id, user_key, created_at, expires_at, last_request_at, ip, user_agent)
  SELECT $12, key, $13, $14, $15, $16, $17 FROM added RETURNING user_key`

/** Locks the user: whoever changes them at this moment, and ends their sessions, either comes before or sees this one. */
const OPEN_SESSION = `WITH found AS (
    SELECT key FROM users WHERE id = $1 AND password_hash = $2 AND disabled = 0 FOR SHARE
  )
  INSERT INTO sessions (id, user_key, created_at, expires_at, last_request_at, ip, user_agent)
  SELECT $3, key, $4, $5, $6, $7, $8 FROM found RETURNING user_key`

export const REHASH = 'UPDATE users SET password_hash = $1 WHERE id = $2 AND password_hash = $3'

export const SET_HASH = `UPDATE users SET password_hash = $1, updated_at = $2
  WHERE id = $3 AND password_hash = $4 AND disabled = 0 RETURNING id`

export const END_SESSION =
  'DELETE FROM sessions WHERE id = $2 AND user_key = (SELECT key FROM users WHERE id = $1) RETURNING id'

/** Locks in the order in which moments of sessions are noted, so that the two cannot deadlock. */
export const END_SESSIONS = `WITH ended AS (
    SELECT id FROM sessions WHERE user_key = (SELECT key FROM users WHERE id = $1) AND id IS DISTINCT FROM $2::text
    ORDER BY id FOR UPDATE
  )
  DELETE FROM sessions USING ended WHERE sessions.id = ended.id`

/** In the order of the rows' numbers, as every instance does: two that note the same users cannot deadlock. */
export const NOTE_USERS = `INSERT INTO last_requests (user_key, at)
  SELECT key, max(noted.at) FROM unnest($1::bigint[], $2::bigint[]) AS noted (user_key, at)
  JOIN users ON key = noted.user_key GROUP BY key ORDER BY key
  ON CONFLICT (user_key) DO UPDATE SET at = excluded.at WHERE last_requests.at < excluded.at`

export const NOTE_SESSIONS = `WITH noted AS (
    SELECT id, max(at) AS at FROM unnest($1::text[], $2::bigint[]) AS given (id, at) GROUP BY id
  ), locked AS (
    SELECT sessions.id, noted.at FROM sessions JOIN noted USING (id) ORDER BY sessions.id FOR UPDATE OF sessions
  )
  UPDATE sessions SET last_request_at = GREATEST(last_request_at, locked.at) FROM locked WHERE sessions.id = locked.id`

export const openStatement = (session: Session, verifiedHash: string): Statement => {
  const { id, userId, createdAt, expiresAt, lastRequestAt, ip, userAgent } = session
  const values = [userId, verifiedHash, id, createdAt, expiresAt, lastRequestAt, ip, userAgent]
  return { name: 'open-session', text: OPEN_SESSION, values }
}

export const updateStatement = (
  id: string,
  changes: UserChanges,
  at: number,
  { onlyEnabled }: UpdateOptions,
): Statement => {
  const set = { ...changedColumns(changes), updated_at: at }
  const assignments = Object.keys(set).map((column, index) => `${column} = $${index + 2}`)
  const where = onlyEnabled ? 'id = $1 AND disabled = 0' : 'id = $1'
  return {
    text: `UPDATE users SET ${assignments.join(', ')} WHERE ${where} RETURNING id`,
    values: [id, ...Object.values(set)],
  }
}
