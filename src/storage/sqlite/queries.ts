/** The reads by a key. */
import { SESSION_COLUMNS, selectEmailToken, selectUser } from '../rows.ts'

export const SELECT_SESSION = `SELECT user_key, ${SESSION_COLUMNS.join(', ')} FROM sessions WHERE id = ?`
export const SELECT_BY_KEY = `${selectUser()} WHERE key = ?`
export const SELECT_BY_ID = `${selectUser()} WHERE id = ?`
export const SELECT_BY_EMAIL = `${selectUser('password_hash')} WHERE email = ?`

/** Each step by an index, without a join (see `selectUser`). */
export const LIST_SESSIONS = `SELECT ${SESSION_COLUMNS.join(', ')} FROM sessions
  WHERE user_key = (SELECT key FROM users WHERE id = ?) AND expires_at > ? AND last_request_at > ?
  ORDER BY created_at DESC, id DESC LIMIT ?`

export const SELECT_EMAIL_TOKEN = `${selectEmailToken} WHERE digest = ? AND expires_at > ?`
