/** The query builder, and the reads by key. */
import { DummyDriver, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely'
import { readStatements } from '../read-statements.ts'
import { SESSION_COLUMNS, selectUser } from '../rows.ts'
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
export const { SELECT_BY_ID, SELECT_BY_EMAIL, SELECT_EMAIL_TOKEN, LIST_SESSIONS } = readStatements(() => '?')
