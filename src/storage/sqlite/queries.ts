/** The query builder, and the reads by key. */
import { DummyDriver, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely'
import { SESSION_COLUMNS, selectEmailToken, selectUser } from '../rows.ts'
import type { DatabaseSchema } from '../schema.ts'

/** Kysely builds SQL only: its own driver would prepare every query anew. */
export const queries = new Kysely<DatabaseSchema>({
  dialect: {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: db => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  },
})

/** The parameters of an `INSERT`, each named after its column. */
export const parameters = (columns: readonly string[]): string =>
  columns.map(column => `@${column}`).join(', ')

export const SELECT_SESSION = `SELECT user_key, ${SESSION_COLUMNS.join(', ')} FROM sessions WHERE id = ?`
export const SELECT_BY_KEY = `${selectUser()} WHERE key = ?`
export const SELECT_BY_ID = `${selectUser()} WHERE id = ?`
export const SELECT_BY_EMAIL = `${selectUser('password_hash')} WHERE email = ?`

/** Uses an index for each table, without a join (see `selectUser`). */
export const LIST_SESSIONS = `SELECT ${SESSION_COLUMNS.join(', ')} FROM sessions
  WHERE user_key = (SELECT key FROM users WHERE id = ?) AND expires_at > ? AND last_request_at > ?
  ORDER BY created_at DESC, id DESC LIMIT ?`

export const SELECT_EMAIL_TOKEN = `${selectEmailToken} WHERE digest = ? AND expires_at > ?`
