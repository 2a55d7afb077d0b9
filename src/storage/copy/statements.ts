/** What a copy asks of the shared store: a few statements for a slice, whatever its size, each prepared once. */
import type { Statement } from '../postgres/database.ts'
import type { SourceUser, UserColumn } from './plan.ts'
import { USER_COLUMNS } from './plan.ts'
import type { SourceSession } from './source.ts'

const NUMBERS: readonly UserColumn[] = ['email_verified', 'disabled', 'created_at', 'updated_at']

const columns = USER_COLUMNS.join(', ')

const given = USER_COLUMNS.map(
  (column, index) => `$${index + 1}::${NUMBERS.includes(column) ? 'bigint' : 'text'}[]`,
).join(', ')

const valuesOf = (users: readonly SourceUser[]): Statement['values'] =>
  USER_COLUMNS.map(column => users.map(user => user[column]))

const idsOf = (users: readonly SourceUser[]): string[] => users.map(({ id }) => id)

const HELD = ['id', 'email']
  .map(
    (column, index) => `SELECT ${USER_COLUMNS.map(name => `users.${name}`).join(', ')} FROM users
      JOIN unnest($${index + 1}::text[]) AS given (${column}) ON given.${column} = users.${column}`,
  )
  .join(' UNION ALL ')

/** Those who have an id or an e-mail of these users. */
export const held = (users: readonly SourceUser[]): Statement => ({
  name: 'copy-held',
  text: HELD,
  values: [idsOf(users), users.map(({ email }) => email)],
})

export const addUsers = (users: readonly SourceUser[]): Statement => ({
  name: 'copy-add-users',
  text: `INSERT INTO users (${columns}) SELECT * FROM unnest(${given})`,
  values: valuesOf(users),
})

/** Takes their e-mails from these users, until `changeUsers` gives them the new ones: no e-mail looks like an id. */
export const freeEmails = (ids: readonly string[]): Statement => ({
  name: 'copy-free-emails',
  text: 'UPDATE users SET email = id WHERE id = ANY($1::text[])',
  values: [ids],
})

export const changeUsers = (users: readonly SourceUser[]): Statement => ({
  name: 'copy-change-users',
  text: `UPDATE users SET ${USER_COLUMNS.map(column => `${column} = given.${column}`).join(', ')}
    FROM unnest(${given}) AS given (${columns}) WHERE users.id = given.id`,
  values: valuesOf(users),
})

/** Disabling has ended sessions in the source, so those that it still has are added anew. */
export const endSessions = (users: readonly SourceUser[]): Statement => ({
  name: 'copy-end-sessions',
  text: `DELETE FROM sessions USING users, unnest($1::text[]) AS given (id)
    WHERE users.id = given.id AND sessions.user_key = users.key`,
  values: [idsOf(users)],
})

/** ON CONFLICT alone would lock, and so write, every row that is there already. */
export const addSessions = (sessions: readonly SourceSession[]): Statement => ({
  name: 'copy-add-sessions',
  text: `INSERT INTO sessions (id, user_key, created_at, expires_at, last_request_at, ip, user_agent)
    SELECT given.id, key, given.created_at, given.expires_at, given.last_request_at, given.ip, given.user_agent
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[])
      AS given (id, user_id, created_at, expires_at, last_request_at, ip, user_agent)
    JOIN users ON users.id = given.user_id LEFT JOIN sessions AS had ON had.id = given.id
    WHERE had.id IS NULL OR had.last_request_at < given.last_request_at ORDER BY given.id
    ON CONFLICT (id) DO UPDATE SET last_request_at = excluded.last_request_at
      WHERE sessions.last_request_at < excluded.last_request_at
    RETURNING id`,
  values: [
    sessions.map(({ id }) => id),
    sessions.map(({ user_id }) => user_id),
    sessions.map(({ created_at }) => created_at),
    sessions.map(({ expires_at }) => expires_at),
    sessions.map(({ last_request_at }) => last_request_at),
    sessions.map(({ ip }) => ip),
    sessions.map(({ user_agent }) => user_agent),
  ],
})

/** For users whose sessions may have been ended in the target: none of them comes back. */
export const raiseSessions = (sessions: readonly SourceSession[]): Statement => ({
  name: 'copy-raise-sessions',
  text: `UPDATE sessions SET last_request_at = given.at FROM unnest($1::text[], $2::bigint[]) AS given (id, at)
    WHERE sessions.id = given.id AND sessions.last_request_at < given.at RETURNING sessions.id`,
  values: [sessions.map(({ id }) => id), sessions.map(({ last_request_at }) => last_request_at)],
})

/** In the order in which instances note them, so that the two cannot deadlock. */
export const noteUsers = (users: readonly SourceUser[]): Statement => {
  const noted = users.filter(({ last_request_at }) => last_request_at !== null)
  return {
    name: 'copy-note-users',
    text: `INSERT INTO last_requests (user_key, at)
      SELECT key, given.at FROM unnest($1::text[], $2::bigint[]) AS given (id, at)
      JOIN users ON users.id = given.id LEFT JOIN last_requests AS had ON had.user_key = key
      WHERE had.at IS NULL OR had.at < given.at ORDER BY key
      ON CONFLICT (user_key) DO UPDATE SET at = excluded.at WHERE last_requests.at < excluded.at`,
    values: [idsOf(noted), noted.map(({ last_request_at }) => last_request_at)],
  }
}
