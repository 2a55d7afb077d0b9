/** Stored data, read and changed without the service. */
import Database from 'better-sqlite3'
import { query } from './postgres.ts'

/** @returns each row of each table, as JSON. */
export const storedRows = async (databaseUrl: string): Promise<string> => {
  const rows: unknown[] = []
  if (databaseUrl.startsWith('postgres')) {
    const tables = await query(databaseUrl, `SELECT tablename FROM pg_tables WHERE schemaname = 'public'`)
    for (const { tablename } of tables)
      rows.push(tablename, await query(databaseUrl, `SELECT "${tablename}"::text FROM "${tablename}"`))
    return JSON.stringify(rows)
  }
  const database = new Database(databaseUrl.replace(/^sqlite:/, ''), { readonly: true })
  try {
    const tables = database.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table'`).pluck().all()
    for (const name of tables) rows.push(name, database.prepare(`SELECT * FROM "${name}"`).raw().all())
    return JSON.stringify(rows)
  } finally {
    database.close()
  }
}

/** @returns the rows of one query. */
export const select = async (databaseUrl: string, text: string): Promise<Record<string, unknown>[]> => {
  if (databaseUrl.startsWith('postgres')) return query(databaseUrl, text)
  const database = new Database(databaseUrl.replace(/^sqlite:/, ''), { readonly: true })
  try {
    return database.prepare<[], Record<string, unknown>>(text).all()
  } finally {
    database.close()
  }
}

/** Runs one statement that changes stored data. */
export const execute = async (databaseUrl: string, text: string): Promise<void> => {
  if (databaseUrl.startsWith('postgres')) return void (await query(databaseUrl, text))
  const database = new Database(databaseUrl.replace(/^sqlite:/, ''))
  try {
    database.prepare(text).run()
  } finally {
    database.close()
  }
}
