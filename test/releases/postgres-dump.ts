/** A PostgreSQL database as SQL text: the statements of its migrations, then its rows. It needs no `pg_dump` of the same version. */
import { Kysely, PostgresDialect } from 'kysely'
import { Migrator } from 'kysely/migration'
import pg from 'pg'
import { migrations } from '../../src/storage/migrations/list.ts'
import { POSTGRES_DIALECT } from '../../src/storage/postgres/migrate.ts'
import { query } from '../support/postgres.ts'

const isSchemaChange = (text: string): boolean => /^\s*(create|alter|drop)\b/i.test(text)

/** Migrates an empty database. @returns the statements that did it. */
export const recordSchema = async (url: string): Promise<string[]> => {
  const statements: string[] = []
  const db = new Kysely<unknown>({
    dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: url, max: 1 }) }),
    log: ({ query: { sql } }) => void (isSchemaChange(sql) && statements.push(sql)),
  })
  try {
    const provider = { getMigrations: async () => migrations(POSTGRES_DIALECT) }
    const { error } = await new Migrator({ db, provider }).migrateToLatest()
    if (error !== undefined) throw error
    return statements
  } finally {
    await db.destroy()
  }
}

/** Users first: other rows refer to them. */
const TABLES = `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'
  ORDER BY table_name <> 'users', table_name`

/** @returns statements that insert every row, and continue the numbers of users. */
export const recordRows = async (url: string): Promise<string[]> => {
  const inserts: string[] = []
  for (const { name } of await query(url, TABLES)) {
    const [row] = await query(
      url,
      `SELECT coalesce(json_agg(rows), '[]')::text AS rows FROM "${name}" AS rows`,
    )
    const rows = pg.escapeLiteral(String(row?.rows))
    inserts.push(
      `INSERT INTO "${name}" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"${name}", ${rows})`,
    )
  }
  const sequence = `pg_get_serial_sequence('users', 'key')`
  return [...inserts, `SELECT setval(${sequence}, (SELECT max(key) FROM users))`]
}
