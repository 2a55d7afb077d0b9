import { DummyDriver, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely'
import { SESSION_COLUMNS, selectEmailToken, selectUser } from '../rows.ts'
import type { DatabaseSchema } from '../schema.ts'

/** Kysely as a writer of SQL alone: its own driver would prepare every query anew. */
export const queries = new Kysely<DatabaseSchema>({
  dialect: {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: db => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  },
})

/** A parameter of its own name for each column, as `INSERT` lists them. */
export const parameters = (columns: readonly string[]): string =>
  columns.map(column => `@${column}`).join(', ')

/** The reads by a key. */

export const SELECT_SESSION = `SELECT user_key, ${SESSION_COLUMNS.join(', ')} FROM sessions WHERE id = ?`
export const SELECT_BY_KEY = `${selectUser()} WHERE key = ?`
export const SELECT_BY_ID = `${selectUser()} WHERE id = ?`
export const SELECT_BY_EMAIL = `${selectUser('password_hash')} WHERE email = ?`

/** Each step by an index, without a join (see `selectUser`). */
export const LIST_SESSIONS = `SELECT ${SESSION_COLUMNS.join(', ')} FROM sessions
  WHERE user_key = (SELECT key FROM users WHERE id = ?) AND expires_at > ? AND last_request_at > ?
  ORDER BY created_at DESC, id DESC LIMIT ?`

export const SELECT_EMAIL_TOKEN = `${selectEmailToken} WHERE digest = ? AND expires_at > ?`
