/** Removal of old rows. Sessions and the counts of rate limits are removed by `clean-up.ts` of each engine. */
import { firstIdAt, hexTimestamp } from '../../ids.ts'
import { type Query, query } from './operation.ts'
import { invalidatesNothing, type UncachedWrite } from './write.ts'

/**
 * Removes rows before a key, in the order of keys. On PostgreSQL it skips locked rows, which another instance is removing.
 * @returns whether there may be more.
 */
const removeBefore = (
  table: string,
  key: string,
  before: string,
  limit: number,
): Query<UncachedWrite<boolean>> =>
  query(
    {
      name: `remove-${table}`,
      text: ({ forUpdateSkipLocked }) => `WITH old AS (
          SELECT ${key} FROM ${table} WHERE ${key} < $1 ORDER BY ${key} LIMIT $2 ${forUpdateSkipLocked}
        )
        DELETE FROM ${table} WHERE ${key} IN (SELECT ${key} FROM old) RETURNING ${key}`,
      values: [before, limit],
    },
    removed => invalidatesNothing(removed.length === limit),
  )

/** @param before the tokens created before this time (milliseconds since the epoch). */
export const removeEmailTokens = (before: number, limit: number) =>
  removeBefore('email_tokens', 'digest', hexTimestamp(before), limit)

/** @param before the events recorded before this time (milliseconds since the epoch). */
export const removeEvents = (before: number, limit: number) =>
  removeBefore('events', 'id', firstIdAt(before), limit)
