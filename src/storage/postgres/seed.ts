/** Fills a PostgreSQL database with users, in statements of many rows. */
import pg from 'pg'
import { SESSION_COLUMNS, sessionColumns, USER_COLUMNS, userColumns } from '../rows.ts'
import type { SeedSession, SeedStore } from '../seed.ts'
import type { StoredFeature } from '../stored-feature.ts'
import { connectionOptions, ignore } from './database.ts'
import { openPrimary } from './migrate.ts'
import { typeOf } from './parameters.ts'

/** Milliseconds for a statement of thousands of rows, and for the final VACUUM. */
const TIMEOUT = 600_000

const columns = USER_COLUMNS.join(', ')

const ADD_USERS = `INSERT INTO users (${columns}) SELECT ${columns} FROM json_populate_recordset(NULL::users, $1)
  ON CONFLICT (email) DO NOTHING`

/** Whether a session of `users` is active at the time of the given session, which was created now. */
const IS_ACTIVE = `user_key = users.key AND expires_at > given.created_at AND last_request_at > given.created_at - $2::bigint
  AND ip IS NULL`

const GIVEN = `json_to_recordset($1) AS given
    (email text, ${SESSION_COLUMNS.map(column => `${column} ${typeOf(column)}`).join(', ')})
  JOIN users ON users.email = given.email AND disabled = 0`

const ADD_SESSIONS = `INSERT INTO sessions (user_key, ${SESSION_COLUMNS.join(', ')})
  SELECT users.key, ${SESSION_COLUMNS.map(column => `given.${column}`).join(', ')}
  FROM ${GIVEN} WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE ${IS_ACTIVE})`

const SELECT_SESSIONS = `SELECT session.id, users.id AS "userId", session.created_at AS "createdAt",
    session.expires_at AS "expiresAt"
  FROM ${GIVEN} CROSS JOIN LATERAL (
    SELECT id, created_at, expires_at FROM sessions WHERE ${IS_ACTIVE} ORDER BY created_at DESC, id DESC LIMIT 1
  ) AS session ORDER BY users.key`

const connect = async (url: string): Promise<pg.Client> => {
  const client = new pg.Client({
    ...connectionOptions(url),
    statement_timeout: TIMEOUT,
    query_timeout: TIMEOUT,
  })
  // The statement on a broken connection rejects.
  client.on('error', ignore)
  await client.connect()
  return client
}

export const openPostgresSeedStore = async (
  url: string,
  features: readonly StoredFeature[],
): Promise<SeedStore> => {
  const primary = await openPrimary(url, features)
  const client = await connect(primary.url)
  return {
    async add(accounts, idle) {
      await client.query('BEGIN')
      const users = accounts.map(({ user }) => userColumns(user))
      const added = (await client.query(ADD_USERS, [JSON.stringify(users)])).rowCount ?? 0
      const given = accounts.flatMap(({ user, session }) =>
        session === null ? [] : { email: user.email, session },
      )
      const rows = given.map(({ email, session }) => ({ email, ...sessionColumns(session) }))
      const values = [JSON.stringify(rows), idle]
      if (given.length > 0) await client.query(ADD_SESSIONS, values)
      // If all users are new, their only sessions are the given ones.
      const isGiven = given.length === 0 || added === accounts.length
      const sessions = isGiven
        ? given.map(({ session }) => session)
        : (await client.query<SeedSession>(SELECT_SESSIONS, values)).rows
      await client.query('COMMIT')
      return { added, sessions }
    },
    async finish() {
      await client.query('VACUUM (ANALYZE) users, sessions')
    },
    close: () => client.end(),
  }
}
