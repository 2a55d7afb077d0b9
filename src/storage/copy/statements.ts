/** The statements of a copy to PostgreSQL. A slice takes a few of them, whatever its size; named ones are prepared once. */

import { EVENT_COLUMNS, type EventRow } from '#core/audit-log/event-rows'
import { USER_COLUMNS } from '#core/users/user-rows'
import { CHANNEL, type Statement } from '../postgres/database.ts'
import { arrays, arraysOf } from '../postgres/parameters.ts'
import type { StoredFactor } from '../stored-feature.ts'
import { ACCESS_CHANGES, type SourceUser } from './plan.ts'
import type { DeletedUser } from './source.ts'

const USER_COLUMN_LIST = USER_COLUMNS.join(', ')

export interface WithId {
  readonly id: string
}

export const idsOf = (rows: readonly WithId[]): string[] => rows.map(({ id }) => id)

/**
 * The ids of all users, sessions and e-mail tokens that were ever copied into this database, and the keys of features' rows after
 * the name of their table (`notes:…`). A row that is in this table and no
 * longer in its own table was deleted or revoked here, so a repeated copy does not add it again. Only copies use the table.
 */
export const CREATE_COPIED_ROWS: Statement = {
  text: 'CREATE TABLE IF NOT EXISTS copied_rows (id text COLLATE "C" PRIMARY KEY)',
  values: [],
}

/** The position up to which the audit log of each source was copied. Positions are in the order of the source's commits. */
export const CREATE_COPIED_EVENTS: Statement = {
  text: 'CREATE TABLE IF NOT EXISTS copied_events (source text PRIMARY KEY, position bigint NOT NULL)',
  values: [],
}

export const copiedEvents = (source: string): Statement => ({
  text: 'SELECT position FROM copied_events WHERE source = $1',
  values: [source],
})

export const recordCopiedEvents = (source: string, position: number): Statement => ({
  name: 'copy-record-copied-events',
  text: `INSERT INTO copied_events VALUES ($1, $2)
    ON CONFLICT (source) DO UPDATE SET position = excluded.position`,
  values: [source, position],
})

/**
 * Adds events that the target does not have. IP addresses of users who were deleted in the target are left out, because the
 * deletion has erased them. `user.deleted` is left out for users who exist in the target: they were changed there since, or
 * imported again.
 */
export const addEvents = (events: readonly EventRow[]): Statement => ({
  name: 'copy-add-events',
  text: `WITH removed AS (SELECT DISTINCT user_id FROM events WHERE type = 'user.deleted' AND user_id = ANY($${EVENT_COLUMNS.indexOf('user_id') + 1}))
    INSERT INTO events (${EVENT_COLUMNS.join(', ')})
    SELECT id, at, type, actor_type, actor_id, user_id,
      CASE WHEN actor_type <> 'adminKey' AND user_id IN (SELECT user_id FROM removed) THEN NULL ELSE ip END, details
    FROM unnest(${arrays(EVENT_COLUMNS, 1)}) AS given (${EVENT_COLUMNS.join(', ')})
    WHERE NOT EXISTS (SELECT 1 FROM events AS existing WHERE existing.id = given.id)
      AND NOT (type = 'user.deleted' AND EXISTS (SELECT 1 FROM users WHERE users.id = given.user_id))
    ORDER BY id RETURNING id`,
  values: arraysOf(EVENT_COLUMNS, events),
})

/** As a removal does: the IP addresses of administrators are not personal data of the user. */
export const eraseIpAddresses = (userIds: readonly string[]): Statement => ({
  name: 'copy-erase-ip-addresses',
  text: `UPDATE events SET ip = NULL WHERE user_id = ANY($1::text[]) AND actor_type <> 'adminKey' AND ip IS NOT NULL`,
  values: [userIds],
})

/** Selects the ids of these users that were copied before. */
export const copiedBefore = (users: readonly SourceUser[]): Statement => ({
  name: 'copy-copied-before',
  text: 'SELECT id FROM copied_rows WHERE id = ANY($1::text[])',
  values: [idsOf(users)],
})

/** Checks for existing rows first, so that they are neither written nor locked. */
export const recordCopied = (ids: readonly string[]): Statement => ({
  name: 'copy-record-copied',
  text: `INSERT INTO copied_rows SELECT id FROM unnest($1::text[]) AS given (id)
    WHERE NOT EXISTS (SELECT 1 FROM copied_rows WHERE copied_rows.id = given.id)`,
  values: [ids],
})

const USERS_WITH_ID_OR_EMAIL = ['id', 'email']
  .map(
    (column, index) => `SELECT ${USER_COLUMNS.map(name => `users.${name}`).join(', ')} FROM users
      JOIN unnest($${index + 1}::text[]) AS given (${column}) ON given.${column} = users.${column}`,
  )
  .join(' UNION ALL ')

/** Selects the users of the target who have an id or an e-mail of these users, those with both twice. */
export const usersWithIdOrEmail = (users: readonly SourceUser[]): Statement => ({
  name: 'copy-users-with-id-or-email',
  text: USERS_WITH_ID_OR_EMAIL,
  values: [idsOf(users), users.map(({ email }) => email)],
})

const ADDED_COLUMNS = [...USER_COLUMNS, 'factors'] as const

/** With their factors: until the rows of the factors are copied too, these users cannot sign in with the password alone. */
export const addUsers = (users: readonly SourceUser[]): Statement => ({
  name: 'copy-add-users',
  text: `INSERT INTO users (${ADDED_COLUMNS.join(', ')}) SELECT * FROM unnest(${arrays(ADDED_COLUMNS, 1)})`,
  values: arraysOf(ADDED_COLUMNS, users),
})

/**
 * Lists the factors of every user by their rows, which are copied alike wherever the user changed later. The text is that of `factorsColumn`.
 * @returns the ids of the users whose list has changed.
 */
export const setFactors = (factors: readonly StoredFactor[]): Statement => ({
  text: `WITH held AS (${factors.map(({ name, users }) => `SELECT user_key, '${name}' AS name FROM (${users}) AS own`).join(' UNION ')}),
    listed AS (
      SELECT user_key, '["' || string_agg(name, '","' ORDER BY name COLLATE "C") || '"]' AS factors FROM held GROUP BY user_key
    )
    UPDATE users SET factors = listed.factors
    FROM users AS own LEFT JOIN listed ON listed.user_key = own.key
    WHERE users.key = own.key AND own.factors IS DISTINCT FROM listed.factors RETURNING users.id`,
  values: [],
})

/** Replaces e-mails by ids until `changeUsers` sets the new ones. No e-mail has the form of an id. */
export const freeEmails = (ids: readonly string[]): Statement => ({
  name: 'copy-free-emails',
  text: 'UPDATE users SET email = id WHERE id = ANY($1::text[])',
  values: [ids],
})

export const changeUsers = (users: readonly SourceUser[]): Statement => ({
  name: 'copy-change-users',
  text: `UPDATE users SET ${USER_COLUMNS.map(column => `${column} = given.${column}`).join(', ')}
    FROM unnest(${arrays(USER_COLUMNS, 1)}) AS given (${USER_COLUMN_LIST}) WHERE users.id = given.id`,
  values: arraysOf(USER_COLUMNS, users),
})

export const accessChanges = (ids: readonly string[]): Statement => ({
  name: 'copy-access-changes',
  text: `SELECT ${ACCESS_CHANGES} FROM users LEFT JOIN events ON events.user_id = users.id
    WHERE users.id = ANY($1::text[]) GROUP BY users.id`,
  values: [ids],
})

/** Raises the timestamps of users, in the order in which instances write them, to prevent deadlocks. */
export const raiseLastRequests = (users: readonly SourceUser[]): Statement => {
  const active = users.filter(({ last_request_at }) => last_request_at !== null)
  return {
    name: 'copy-raise-last-requests',
    text: `INSERT INTO last_requests (user_key, at)
      SELECT key, given.at FROM unnest($1::text[], $2::bigint[]) AS given (id, at)
      JOIN users ON users.id = given.id LEFT JOIN last_requests AS existing ON existing.user_key = key
      WHERE existing.at IS NULL OR existing.at < given.at ORDER BY key
      ON CONFLICT (user_key) DO UPDATE SET at = excluded.at WHERE last_requests.at < excluded.at`,
    values: [idsOf(active), active.map(({ last_request_at }) => last_request_at)],
  }
}

/** Selects users who were copied, then deleted in the source, and not changed in the target since. */
export const deletedInSource = (deleted: readonly DeletedUser[]): Statement => ({
  name: 'copy-deleted-in-source',
  text: `SELECT users.id, users.key FROM unnest($1::text[], $2::bigint[]) AS given (id, at) JOIN users ON users.id = given.id
    JOIN copied_rows ON copied_rows.id = given.id WHERE users.updated_at <= given.at`,
  values: [idsOf(deleted), deleted.map(({ at }) => at)],
})

export const deleteUsers = (ids: readonly string[]): Statement => ({
  name: 'copy-delete-users',
  text: 'DELETE FROM users WHERE id = ANY($1::text[])',
  values: [ids],
})

/**
 * Revokes impersonated sessions whose admin key is not in the store any more: one store may have revoked the key, and the other one the
 * session. The ids of root keys, which are in no store, are no UUIDs. Locks in the order of ids.
 * @returns the ids of the users.
 */
export const REVOKE_ORPHANED_IMPERSONATIONS: Statement = {
  text: `WITH orphaned AS (
      SELECT sessions.id FROM sessions WHERE impersonated_by LIKE '%-%'
        AND NOT EXISTS (SELECT 1 FROM admin_keys WHERE admin_keys.id = impersonated_by)
      ORDER BY sessions.id FOR UPDATE
    ), revoked AS (DELETE FROM sessions WHERE id IN (SELECT id FROM orphaned) RETURNING user_key)
    SELECT DISTINCT users.id FROM users JOIN revoked ON revoked.user_key = users.key`,
  values: [],
}

/** Notifies the instances that the cached state of these users is stale. */
export const notification = (userIds: readonly string[]): Statement => ({
  text: 'SELECT pg_notify($1, id) FROM unnest($2::text[]) AS changed (id)',
  values: [CHANNEL, userIds],
})
