/**
 * Removes a slice of expired rows with one statement. It locks rows in the order of ids, like every write of several sessions, and skips
 * locked ones, which are being written or removed. Once a row is locked, PostgreSQL checks its condition again.
 */

import type { Database, Statement } from '#storage/postgres/database'
import type { CleanUpStore } from '../store/store.ts'

/** Rows that one slice scans. */
const SCANNED = 1_000

/** Removes expired rows among the next ones in the order of the key. $1: the key before the first, $2: the maximum number. */
const removeNext = (table: string, key: string, isExpired: string): string => `WITH scanned AS (
    SELECT ${key} FROM ${table} WHERE ${key} > $1 ORDER BY ${key} LIMIT ${SCANNED}
  ), expired AS (
    SELECT ${key} FROM ${table} WHERE ${key} > $1 AND ${key} <= (SELECT max(${key}) FROM scanned) AND (${isExpired})
    ORDER BY ${key} LIMIT $2::bigint FOR UPDATE SKIP LOCKED
  ), removed AS (
    DELETE FROM ${table} USING expired WHERE ${table}.${key} = expired.${key}
  )
  SELECT CASE
    WHEN (SELECT count(*) FROM expired) = $2 THEN (SELECT max(${key}) FROM expired)
    WHEN (SELECT count(*) FROM scanned) = ${SCANNED} THEN (SELECT max(${key}) FROM scanned)
    ELSE ''
  END AS next`

const REMOVE_SESSIONS = removeNext('sessions', 'id', 'expires_at <= $3 OR last_request_at <= $4')

const REMOVE_RATE_LIMITS = removeNext('rate_limits', 'key', 'expire <= $3')

/** Nothing is invalidated: `Authenticator` checks the expiry of cached sessions. */
export const cleanUp = (database: Database): Pick<CleanUpStore, 'removeSessions' | 'removeRateLimits'> => {
  const nextOf = async (statement: Statement): Promise<string> => {
    const [row] = await database.writeUncached<{ next: string }>(statement)
    return row?.next ?? ''
  }

  return {
    removeSessions: ({ endedBy, idleSince }, after, limit) =>
      nextOf({ name: 'remove-sessions', text: REMOVE_SESSIONS, values: [after, limit, endedBy, idleSince] }),

    removeRateLimits: (expiredBy, after, limit) =>
      nextOf({ name: 'remove-rate-limits', text: REMOVE_RATE_LIMITS, values: [after, limit, expiredBy] }),
  }
}
