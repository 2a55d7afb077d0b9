/** Statements whose shape depends on what is asked. */
import {
  type Compilable,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
} from 'kysely'
import type { FoundSession } from '../../auth/session-store.ts'
import { SESSION_COLUMNS, selectEmailToken, selectUser, toSession, toUser, type UserRow } from '../rows.ts'
import type { DatabaseSchema } from '../schema.ts'
import type { Statement } from './database.ts'

/** Kysely as a writer of SQL alone: connections are the database's. */
export const queries = new Kysely<DatabaseSchema>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: db => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
})

/** Without a name: a plan that is made for any search serves none. */
export const statement = (query: Compilable): Statement => {
  const { sql, parameters } = query.compile()
  return { text: sql, values: parameters }
}

/** Statements know their parameters by numbers: those of some columns follow each other, from `first` on. */

const NUMBERS: ReadonlySet<string> = new Set([
  'email_verified',
  'disabled',
  'version',
  'created_at',
  'updated_at',
  'expires_at',
  'last_request_at',
  'at',
])

/** A column's type where nothing but the statement tells it. */
export const typeOf = (column: string): string => (NUMBERS.has(column) ? 'bigint' : 'text')

/** A parameter for each column, as `INSERT` lists them. */
export const parameters = (columns: readonly string[], first: number): string =>
  columns.map((_, index) => `$${first + index}`).join(', ')

/** An array for each column, as `unnest` takes them. */
export const arrays = (columns: readonly string[], first: number): string =>
  columns.map((column, index) => `$${first + index}::${typeOf(column)}[]`).join(', ')

/** The values of {@link parameters}: of no row, none of them given. */
export const valuesOf = <Column extends string>(
  columns: readonly Column[],
  row: Readonly<Record<Column, unknown>> | undefined,
): readonly unknown[] => columns.map(column => row?.[column])

/** The values of {@link arrays}. */
export const arraysOf = <Column extends string>(
  columns: readonly Column[],
  rows: readonly Readonly<Record<Column, unknown>>[],
): readonly unknown[][] => columns.map(column => rows.map(row => row[column]))

/** The reads by a key, and what they give. */

export interface FoundRow extends UserRow {
  key: number
  session_id: string
  opened_at: number
  expires_at: number
  session_last_request_at: number
  ip: string | null
  user_agent: string | null
  impersonated_by: string | null
}

export const SELECT_BY_ID = `${selectUser()} WHERE id = $1`
export const SELECT_BY_EMAIL = `${selectUser('password_hash')} WHERE email = $1`
export const SELECT_SESSION = `${selectUser('key', 'session.*')} JOIN (
    SELECT id AS session_id, user_key, created_at AS opened_at, expires_at, last_request_at AS session_last_request_at,
           ip, user_agent, impersonated_by
    FROM sessions WHERE id = $1
  ) AS session ON session.user_key = users.key`

export const SELECT_EMAIL_TOKEN = `${selectEmailToken} WHERE digest = $1 AND expires_at > $2`

export const LIST_SESSIONS = `SELECT ${SESSION_COLUMNS.join(', ')} FROM sessions
  WHERE user_key = (SELECT key FROM users WHERE id = $1) AND expires_at > $2 AND last_request_at > $3
  ORDER BY created_at DESC, id DESC LIMIT $4`

export const toFound = (row: FoundRow): FoundSession => ({
  session: toSession(
    { ...row, id: row.session_id, created_at: row.opened_at, last_request_at: row.session_last_request_at },
    row.id,
  ),
  user: toUser(row),
  userKey: row.key,
})
