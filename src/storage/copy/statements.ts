/** What a copy asks of the shared store: a few statements for a slice, whatever its size, each prepared once. */
import type { Statement } from '../postgres/database.ts'
import { arrays, arraysOf } from '../postgres/parameters.ts'
import { SESSION_COLUMNS, USER_COLUMNS } from '../rows.ts'
import type { SourceUser } from './plan.ts'
import type { SourceSession } from './source.ts'

const columns = USER_COLUMNS.join(', ')

/** A session as it is given: by its user's id. */
const GIVEN_COLUMNS = ['user_id', ...SESSION_COLUMNS] as const

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
  text: `INSERT INTO users (${columns}) SELECT * FROM unnest(${arrays(USER_COLUMNS, 1)})`,
  values: arraysOf(USER_COLUMNS, users),
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
    FROM unnest(${arrays(USER_COLUMNS, 1)}) AS given (${columns}) WHERE users.id = given.id`,
  values: arraysOf(USER_COLUMNS, users),
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
  text: `INSERT INTO sessions (user_key, ${SESSION_COLUMNS.join(', ')})
    SELECT key, ${SESSION_COLUMNS.map(column => `given.${column}`).join(', ')}
    FROM unnest(${arrays(GIVEN_COLUMNS, 1)}) AS given (${GIVEN_COLUMNS.join(', ')})
    JOIN users ON users.id = given.user_id LEFT JOIN sessions AS had ON had.id = given.id
    WHERE had.id IS NULL OR had.last_request_at < given.last_request_at ORDER BY given.id
    ON CONFLICT (id) DO UPDATE SET last_request_at = excluded.last_request_at
      WHERE sessions.last_request_at < excluded.last_request_at
    RETURNING id`,
  values: arraysOf(GIVEN_COLUMNS, sessions),
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
