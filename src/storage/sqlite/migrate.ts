/** Creates and migrates a database file. */
import { randomInt } from 'node:crypto'
import { migrateSchema } from '../migrations/run.ts'
import type { Schema } from '../migrations/schema.ts'
import type { MigrationSession } from '../migrations/session.ts'
import { type Connection, createDatabaseFile, openDatabase } from './database.ts'
import { assertOwnWal } from './database-file.ts'

/** Milliseconds to wait for another process's migration. */
const LOCK_TIMEOUT = 30_000

/** The first stamp of a database is random below this bound, so that two databases are unlikely to have similar ones. */
const MAX_FIRST_STAMP = 2 ** 30

export const sqliteSession = (connection: Connection): MigrationSession => ({
  engine: 'sqlite',
  run: async <Row>(text: string, values?: readonly unknown[]) => {
    if (values === undefined) {
      connection.exec(text)
      return []
    }
    const statement = connection.prepare<unknown[], Row>(text)
    if (statement.reader) return statement.all(...values)
    statement.run(...values)
    return []
  },
})

const migrateFile = async (file: string, schema: Schema): Promise<void> => {
  assertOwnWal(file)
  createDatabaseFile(file)
  const connection = openDatabase(file, LOCK_TIMEOUT)
  try {
    connection.exec('BEGIN IMMEDIATE')
    await migrateSchema(sqliteSession(connection), schema)
    if (connection.pragma('user_version', { simple: true }) === 0)
      connection.pragma(`user_version = ${randomInt(1, MAX_FIRST_STAMP)}`)
    connection.exec('COMMIT')
  } finally {
    // Closing rolls back an open transaction.
    connection.close()
  }
}

let previous: Promise<unknown> = Promise.resolve()

/**
 * Creates the database when it is missing, and brings its schema up to date, in one transaction that takes the write lock first.
 * Two processes that start at once migrate one after the other, and a crash leaves the schema unchanged. Calls in one process
 * are queued, because waiting for the lock would block the event loop.
 * @throws {Error} that names the file.
 */
export const migrate = (file: string, schema: Schema): Promise<void> => {
  const current = previous.then(() => migrateFile(file, schema))
  previous = current.catch(() => undefined)
  return current.catch(error => {
    throw Object.assign(new Error(`the database ${file}: ${error.message}`, { cause: error }), {
      code: error.code,
    })
  })
}
