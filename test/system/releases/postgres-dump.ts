/** A PostgreSQL database as SQL text: the statements of its migrations, then its rows. It needs no `pg_dump` of the same version. */
import pg from 'pg'
import { schemaOf } from '#core/store/migrations'
import { BUILT_IN_FEATURES } from '#features/built-in'
import { migrate } from '#storage/postgres/migrate'
import { query } from '../../support/postgres.ts'

const isSchemaChange = (text: unknown): text is string =>
  typeof text === 'string' && /^\s*(create|alter|drop)\b/i.test(text)

/** Migrates an empty database. @returns the statements that did it, those of features too. */
export const recordSchema = async (url: string): Promise<string[]> => {
  const statements: string[] = []
  const { query } = pg.Client.prototype
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
    if (isSchemaChange(args[0])) statements.push(args[0])
    return query.apply(this, args as never)
  } as typeof query
  try {
    await migrate(url, schemaOf(BUILT_IN_FEATURES))
    return statements
  } finally {
    pg.Client.prototype.query = query
  }
}

/** Users first: other rows refer to them. */
const TABLES = `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public' AND NOT (SELECT relispartition FROM pg_class WHERE oid = quote_ident(table_name)::regclass)
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
