import { randomInt } from 'node:crypto'
import { Kysely, SqliteDialect } from 'kysely'
import { Migrator } from 'kysely/migration'
import { migrations } from '../migrations/list.ts'
import { createDatabaseFile, openDatabase } from './database.ts'
import { assertOwnLog } from './database-file.ts'
import { SQLITE_DIALECT } from './schema-dialect.ts'

/** Milliseconds that a process waits for another one's migration. */
const LOCK_TIMEOUT = 30_000

/** The first stamp of a database (`stamp` in database.ts); two databases hardly ever have ones near each other. */
const MAX_FIRST_STAMP = 2 ** 30

const run = async (file: string): Promise<void> => {
  assertOwnLog(file)
  createDatabaseFile(file)
  const connection = openDatabase(file, LOCK_TIMEOUT)
  const db = new Kysely<unknown>({ dialect: new SqliteDialect({ database: connection }) })
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations(SQLITE_DIALECT) } })
  try {
    connection.exec('BEGIN IMMEDIATE')
    const { error } = await migrator.migrateToLatest()
    if (error !== undefined) throw error
    if (connection.pragma('user_version', { simple: true }) === 0)
      connection.pragma(`user_version = ${randomInt(1, MAX_FIRST_STAMP)}`)
    connection.exec('COMMIT')
  } finally {
    // Closing takes back what was not committed.
    await db.destroy()
  }
}

let last: Promise<unknown> = Promise.resolve()

/**
 * Brings the schema up to date. All of it is one transaction, begun with the write lock: two processes that start at once
 * migrate one after the other, and a crash in between leaves the schema as it was. So do two calls in one process, which
 * must not wait for each other on the event loop.
 * @throws {Error} what a migration failed with.
 */
export const migrate = (file: string): Promise<void> => {
  const mine = last.then(() => run(file))
  last = mine.catch(() => undefined)
  return mine
}

/** What a store that is opened begins with. @throws {Error} that names the file. */
export const bringUpToDate = (file: string): Promise<void> =>
  migrate(file).catch(error => {
    throw Object.assign(new Error(`the database ${file}: ${error.message}`, { cause: error }), {
      code: error.code,
    })
  })
