/**
 * What is expired is removed by one statement a slice. It locks in the order of ids, as all who lock several sessions do, and
 * waits for nobody: a row that is locked is being written, or being removed by another instance. Once it has the lock of a
 * row, PostgreSQL judges it again as it is then.
 */
import type { CleanUpStore } from '../../accounts/clean-up.ts'
import { firstIdAt, hexMoment } from '../../ids.ts'
import type { Database, Statement } from './database.ts'

/** Rows that are looked at in one slice. */
const LOOKED_AT = 1_000

/** Removes what is expired among the next rows in the order of their key. $1: after which, $2: how many at most. */
const removeNext = (table: string, key: string, isExpired: string): string => `WITH looked_at AS (
    SELECT ${key} FROM ${table} WHERE ${key} > $1 ORDER BY ${key} LIMIT ${LOOKED_AT}
  ), expired AS (
    SELECT ${key} FROM ${table} WHERE ${key} > $1 AND ${key} <= (SELECT max(${key}) FROM looked_at) AND (${isExpired})
    ORDER BY ${key} LIMIT $2::bigint FOR UPDATE SKIP LOCKED
  ), removed AS (
    DELETE FROM ${table} USING expired WHERE ${table}.${key} = expired.${key}
  )
  SELECT CASE
    WHEN (SELECT count(*) FROM expired) = $2 THEN (SELECT max(${key}) FROM expired)
    WHEN (SELECT count(*) FROM looked_at) = ${LOOKED_AT} THEN (SELECT max(${key}) FROM looked_at)
    ELSE ''
  END AS next`

const REMOVE_SESSIONS = removeNext('sessions', 'id', 'expires_at <= $3 OR last_request_at <= $4')

const REMOVE_RATE_LIMITS = removeNext('rate_limits', 'key', 'expire <= $3')

/** Removes what is before a key. $1: which, $2: how many at most. */
const removeBefore = (table: string, key: string): string => `WITH old AS (
    SELECT ${key} FROM ${table} WHERE ${key} < $1 ORDER BY ${key} LIMIT $2 FOR UPDATE SKIP LOCKED
  )
  DELETE FROM ${table} USING old WHERE ${table}.${key} = old.${key} RETURNING old.${key}`

const REMOVE_TOKENS = removeBefore('email_tokens', 'digest')

const REMOVE_EVENTS = removeBefore('events', 'id')

/** Nobody is told: what was remembered of an expired session is good for nothing (`Authenticator`). */
export const cleanUp = (database: Database): CleanUpStore => {
  const nextOf = async (statement: Statement): Promise<string> => {
    const [row] = await database.writeUncached<{ next: string }>(statement)
    return row?.next ?? ''
  }

  return {
    removeSessions: ({ endedBy, idleSince }, after, limit) =>
      nextOf({ name: 'remove-sessions', text: REMOVE_SESSIONS, values: [after, limit, endedBy, idleSince] }),

    async removeEmailTokens(before, limit) {
      const statement = { name: 'remove-tokens', text: REMOVE_TOKENS, values: [hexMoment(before), limit] }
      return (await database.writeUncached(statement)).length === limit
    },

    async removeEvents(before, limit) {
      const statement = { name: 'remove-events', text: REMOVE_EVENTS, values: [firstIdAt(before), limit] }
      return (await database.writeUncached(statement)).length === limit
    },

    removeRateLimits: (expiredBy, after, limit) =>
      nextOf({ name: 'remove-rate-limits', text: REMOVE_RATE_LIMITS, values: [after, limit, expiredBy] }),
  }
}
