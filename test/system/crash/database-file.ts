/** Checks after a crash, in the database file. */
import Database from 'better-sqlite3'

const idIn = (details: 'session' | 'apiKey'): string => `json_extract(details, '$.${details}')`

const REMOVED = "SELECT user_id FROM events WHERE type = 'user.deleted'"

/** Queries for rows that only a partial write leaves behind. */
const HALVES = {
  'users without a session who are not disabled':
    'SELECT id FROM users WHERE disabled = 0 AND NOT EXISTS (SELECT 1 FROM sessions WHERE user_key = users.key)',
  'disabled users with a session':
    'SELECT id FROM users WHERE disabled = 1 AND EXISTS (SELECT 1 FROM sessions WHERE user_key = users.key)',
  'users without what sign-up writes':
    "SELECT id FROM users WHERE password_hash NOT LIKE '$argon2id$%' OR first_name IS NULL OR first_name_key <> first_name",
  'users without the event of their sign-up':
    "SELECT id FROM users WHERE id NOT IN (SELECT user_id FROM events WHERE type = 'user.signed-up')",
  'users who signed up, but are neither stored nor removed': `SELECT user_id FROM events
    WHERE type = 'user.signed-up' AND user_id NOT IN (SELECT id FROM users) AND user_id NOT IN (${REMOVED})`,
  'users with more or fewer changes than events': `SELECT id FROM users WHERE version - 1 <> (
      SELECT count(*) FROM events
      WHERE user_id = users.id AND type IN ('user.changed', 'user.disabled', 'password.changed')
    )`,
  'users whose roles differ from user_roles': `SELECT id FROM users WHERE coalesce(roles, '[]') <> (
      SELECT json_group_array(role ORDER BY role) FROM user_roles
      WHERE user_key = users.key AND user_id = users.id AND user_created_at = users.created_at
    )`,
  'sessions older than the last change of the password': `SELECT sessions.id FROM sessions
    JOIN users ON users.key = user_key JOIN events ON user_id = users.id
    WHERE type = 'password.changed' AND sessions.created_at < at`,
  'ended sessions that are stored': `SELECT id FROM sessions
    WHERE id IN (SELECT ${idIn('session')} FROM events WHERE type = 'session.ended')`,
  'sessions that are missing, but have not ended': `SELECT ${idIn('session')} FROM events opened
    WHERE type = 'user.signed-in' AND ${idIn('session')} NOT IN (SELECT id FROM sessions) AND NOT EXISTS (
      SELECT 1 FROM events ended WHERE user_id = opened.user_id AND id > opened.id AND (
        type IN ('password.changed', 'user.disabled', 'user.deleted')
        OR type = 'session.ended' AND ${idIn('session')} = json_extract(opened.details, '$.session')
      )
    )`,
  'API keys without the event of their creation': `SELECT id FROM api_keys
    WHERE id NOT IN (SELECT ${idIn('apiKey')} FROM events WHERE type = 'api-key.created')`,
  'API keys that are missing, but were not revoked': `SELECT ${idIn('apiKey')} FROM events
    WHERE type = 'api-key.created' AND ${idIn('apiKey')} NOT IN (
      SELECT id FROM api_keys UNION ALL SELECT ${idIn('apiKey')} FROM events WHERE type = 'api-key.revoked'
    ) AND user_id NOT IN (${REMOVED})`,
  'revoked API keys that are stored': `SELECT id FROM api_keys
    WHERE id IN (SELECT ${idIn('apiKey')} FROM events WHERE type = 'api-key.revoked')`,
  'removed users that are stored': `SELECT id FROM users WHERE id IN (${REMOVED})`,
  'addresses of removed users': `SELECT user_id FROM events WHERE ip IS NOT NULL AND actor_type <> 'adminKey' AND user_id IN (${REMOVED})`,
  ...Object.fromEntries(
    ['sessions', 'known_networks', 'last_requests', 'email_tokens', 'user_roles', 'api_keys'].map(table => [
      `rows of ${table} without a user`,
      `SELECT user_key FROM ${table} WHERE user_key NOT IN (SELECT key FROM users)`,
    ]),
  ),
}

export interface FileReport {
  /** Partially written rows, with what is missing. */
  readonly halves: readonly string[]
  /** `ok`, or the errors that SQLite reports. */
  readonly integrity: string
}

/** Reads the database file without changing it. */
export const inspectFile = (file: string): FileReport => {
  const db = new Database(file, { readonly: true, fileMustExist: true, timeout: 5_000 })
  try {
    const halves = Object.entries(HALVES).flatMap(([what, sql]) =>
      db
        .prepare(sql)
        .pluck()
        .all()
        .map(id => `${what}: ${id}`),
    )
    return { halves, integrity: String(db.pragma('integrity_check', { simple: true })) }
  } finally {
    db.close()
  }
}
