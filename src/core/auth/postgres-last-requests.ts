/** Writes of last requests, one batch a second. */
import { ServiceError } from '#base/errors'
import type { Database } from '#storage/postgres/database'
import type { CredentialLastRequest, UserLastRequests } from './last-requests.ts'

/** Writes in the order of keys, so that two instances that write the same users cannot deadlock. */
const RECORD_OF_USERS = `INSERT INTO last_requests (user_key, at)
  SELECT key, max(given.at) FROM unnest($1::bigint[], $2::bigint[]) AS given (user_key, at)
  JOIN users ON key = given.user_key GROUP BY key ORDER BY key
  ON CONFLICT (user_key) DO UPDATE SET at = excluded.at WHERE last_requests.at < excluded.at`

const RECORD_OF_SESSIONS = `WITH latest AS (
    SELECT id, max(at) AS at FROM unnest($1::text[], $2::bigint[]) AS given (id, at) GROUP BY id
  ), locked AS (
    SELECT sessions.id, latest.at FROM sessions JOIN latest USING (id) ORDER BY sessions.id FOR UPDATE OF sessions
  )
  UPDATE sessions SET last_request_at = GREATEST(last_request_at, locked.at) FROM locked WHERE sessions.id = locked.id`

/** A PostgreSQL array of numbers. Faster than pg's conversion, which checks every item for quotes. */
const numbers = (values: readonly number[] | Float64Array): string => `{${values.join(',')}}`

/** The SQLSTATE of PostgreSQL for a row that refers to a missing one. */
const FOREIGN_KEY_VIOLATION = '23503'

/** Whether a user of the batch was removed during the write (foreign key violation). A repeated write skips that user. */
const isOfRemovedUser = (error: unknown): boolean =>
  error instanceof ServiceError &&
  (error.cause as { code?: unknown } | undefined)?.code === FOREIGN_KEY_VIOLATION

export const lastRequestOperations = (database: Database) => ({
  async recordLastRequests(
    users: UserLastRequests,
    sessions: readonly CredentialLastRequest[],
  ): Promise<void> {
    if (users.length > 0) {
      const columns = [0, 1].map(column => users.filter((_, index) => index % 2 === column))
      const values = columns.map(numbers)
      const statement = { name: 'last-requests-of-users', text: RECORD_OF_USERS, values }
      await database.writeUncached(statement).catch(error => {
        if (!isOfRemovedUser(error)) throw error
        return database.writeUncached(statement)
      })
    }
    if (sessions.length > 0) {
      const values = [sessions.map(({ id }) => id), numbers(sessions.map(({ at }) => at))]
      await database.writeUncached({ name: 'last-requests-of-sessions', text: RECORD_OF_SESSIONS, values })
    }
  },
})
