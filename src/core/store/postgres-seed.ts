/** Fills a PostgreSQL database with users, in statements of many rows. */

import { Connection, connectionOptions } from '#storage/postgres/connection'
import { openPrimary } from '#storage/postgres/ensure-schema'
import { typeOf } from '#storage/postgres/parameters'
import type { StoredFeature } from '#storage/stored-feature'
import { SEED_USERS } from '../accounts/postgres-accounts.ts'
import { SESSION_COLUMNS, sessionColumns } from '../auth/session-rows.ts'
import { userColumns } from '../users/user-rows.ts'
import { schemaOf } from './migrations.ts'
import { SEED_EMAILS, type SeededUser, type SeedStore } from './seed.ts'

/** Milliseconds for a statement of thousands of rows, and for the final VACUUM. */
const TIMEOUT = 600_000

/** Whether a session of `users` is active at the time of the given session, which was created now. */
const IS_ACTIVE = `user_key = users.key AND expires_at > given.created_at AND last_request_at > given.created_at - $2::bigint
  AND ip IS NULL`

/** The given rows: the e-mail of a user, and a session. */
const GIVEN = `json_to_recordset($1) AS given
    (number int, email text, ${SESSION_COLUMNS.map(column => `${column} ${typeOf(column)}`).join(', ')})`

const ADD_SESSIONS = `INSERT INTO sessions (user_key, ${SESSION_COLUMNS.join(', ')})
  SELECT users.key, ${SESSION_COLUMNS.map(column => `given.${column}`).join(', ')}
  FROM ${GIVEN} JOIN users ON users.email = given.email AND disabled = 0
  WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE ${IS_ACTIVE})`

/** A row for each given one, in the same order. */
const SELECT_USERS = `SELECT users.id, users.password_hash AS "passwordHash", session.id AS "sessionId",
    session.created_at AS "createdAt", session.expires_at AS "expiresAt"
  FROM ${GIVEN} LEFT JOIN users ON users.email = given.email LEFT JOIN LATERAL (
    SELECT id, created_at, expires_at FROM sessions WHERE ${IS_ACTIVE} AND users.disabled = 0
    ORDER BY created_at DESC, id DESC LIMIT 1
  ) AS session ON true ORDER BY given.number`

const LIST = 'SELECT id, email FROM users WHERE email > $1 AND email < $2 ORDER BY email LIMIT $3'

interface SeededRow {
  readonly id: string | null
  readonly passwordHash: string
  readonly sessionId: string | null
  readonly createdAt: number
  readonly expiresAt: number
}

const toSeeded = ({ id, passwordHash, sessionId, ...times }: SeededRow): SeededUser | null => {
  if (id === null) return null
  return { id, passwordHash, session: sessionId === null ? null : { id: sessionId, userId: id, ...times } }
}

const connect = async (url: string): Promise<Connection> => {
  const client = new Connection({
    ...connectionOptions(url),
    statementTimeout: TIMEOUT,
    query_timeout: TIMEOUT,
  })
  await client.connect()
  return client
}

export const openPostgresSeedStore = async (
  url: string,
  features: readonly StoredFeature[],
): Promise<SeedStore> => {
  const primary = await openPrimary(url, schemaOf(features))
  const client = await connect(primary.url)
  return {
    async add(accounts, idle) {
      await client.query('BEGIN')
      const users = accounts.map(({ user }) => userColumns(user))
      const added = (await client.query(SEED_USERS, [JSON.stringify(users)])).rowCount ?? 0
      const given = accounts.flatMap(({ user, session }) => (session === null ? [] : { user, session }))
      const rows = given.map(({ user: { email }, session }, number) => ({
        ...sessionColumns(session),
        number,
        email,
      }))
      const values = [JSON.stringify(rows), idle]
      if (rows.length > 0) await client.query(ADD_SESSIONS, values)
      // If all users are new, their only sessions are the given ones.
      const seeded =
        added === accounts.length || rows.length === 0
          ? given.map(({ user: { id, passwordHash }, session }) => ({ id, passwordHash, session }))
          : (await client.query<SeededRow>(SELECT_USERS, values)).rows.map(toSeeded)
      await client.query('COMMIT')
      return { added, users: seeded }
    },
    async list(after, limit) {
      return (await client.query(LIST, [after, SEED_EMAILS.before, limit])).rows
    },
    async finish() {
      await client.query('VACUUM (ANALYZE) users, sessions')
    },
    close: () => client.end(),
  }
}
