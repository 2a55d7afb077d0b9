/** Creates and migrates a database file. If its schema is up to date, as at most starts, no lock is taken. */
import { randomInt } from 'node:crypto'
import { isUpToDate, migrateSchema, SELECT_RECORDED } from '../migrations/run.ts'
import type { Schema } from '../migrations/schema.ts'
import type { MigrationSession, RecordedRow } from '../migrations/session.ts'
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
 * Creates and migrates in one transaction that takes the write lock first: processes that start at once do it one after the other. Calls in
 * one process are queued, because waiting for the lock would block the event loop. @throws {Error} that names the file.
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

/** Takes no lock. @returns `null` for what cannot be read: the migrations report it. */
const readRecorded = (file: string): readonly RecordedRow[] | null => {
  let db: Connection | undefined
  try {
    assertOwnWal(file)
    db = openDatabase(file, 0)
    const isStamped = db.pragma('user_version', { simple: true }) !== 0
    return isStamped ? db.prepare<[], RecordedRow>(SELECT_RECORDED).all() : null
  } catch {
    return null
  } finally {
    db?.close()
  }
}

/** Creates a missing database, and migrates one of another version. @throws {Error} that names the file. */
export const ensureSchema = async (file: string, schema: Schema): Promise<void> => {
  const recorded = readRecorded(file)
  if (recorded !== null && (await isUpToDate('sqlite', recorded, schema))) return
  await migrate(file, schema)
}
