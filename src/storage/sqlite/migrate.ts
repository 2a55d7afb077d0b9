/** Creates and migrates a database file. */
import { randomInt } from 'node:crypto'
import { Kysely, SqliteDialect, sql } from 'kysely'
import { Migrator } from 'kysely/migration'
import { migrateFeatures } from '../migrations/feature-migrations.ts'
import { migrations } from '../migrations/list.ts'
import { KEY_TYPES, type SchemaDialect } from '../migrations/schema-dialect.ts'
import type { StoredFeature } from '../stored-feature.ts'
import { createDatabaseFile, openDatabase } from './database.ts'
import { assertOwnWal } from './database-file.ts'

export const SQLITE_DIALECT: SchemaDialect = {
  engine: 'sqlite',
  keyType: KEY_TYPES.sqlite,
  identity: column => column.autoIncrement(),
  text: 'text',
  // The primary key is the id: `WITHOUT ROWID` saves a second B-tree lookup.
  sessionsOptions: sql`without rowid`,
  lastRequestsOptions: null,
  // The primary key has what a list of users with a role needs, in its order.
  userRolesOptions: sql`without rowid`,
  appendOnlyOptions: sql`without rowid`,
  // Each table row that is not in memory costs a disk read: 50 to 80 ms per 1,000 rows. Covering indexes avoid these reads. They
  // take 50 MB of 590 MB at a million users, and do not measurably slow down an insert (150 µs).
  coveringIndexes: true,
  triggerLanguage: 'sqlite',
  singleWriter: true,
  // Each process counts in memory.
  sharedRateLimits: false,
}

/** Milliseconds to wait for another process's migration. */
const LOCK_TIMEOUT = 30_000

/** The first stamp of a database is random below this bound, so that two databases are unlikely to have similar ones. */
const MAX_FIRST_STAMP = 2 ** 30

const migrateFile = async (file: string, features: readonly StoredFeature[]): Promise<void> => {
  assertOwnWal(file)
  createDatabaseFile(file)
  const connection = openDatabase(file, LOCK_TIMEOUT)
  const db = new Kysely<unknown>({ dialect: new SqliteDialect({ database: connection }) })
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations(SQLITE_DIALECT) } })
  try {
    connection.exec('BEGIN IMMEDIATE')
    const { error } = await migrator.migrateToLatest()
    if (error !== undefined) throw error
    await migrateFeatures(db, SQLITE_DIALECT, features)
    if (connection.pragma('user_version', { simple: true }) === 0)
      connection.pragma(`user_version = ${randomInt(1, MAX_FIRST_STAMP)}`)
    connection.exec('COMMIT')
  } finally {
    // Closing rolls back an open transaction.
    await db.destroy()
  }
}

let previous: Promise<unknown> = Promise.resolve()

/**
 * Creates the database when it is missing, and brings its schema up to date, in one transaction that takes the write lock first.
 * Two processes that start at once migrate one after the other, and a crash leaves the schema unchanged. Calls in one process
 * are queued, because waiting for the lock would block the event loop.
 * @throws {Error} that names the file.
 */
export const migrate = (file: string, features: readonly StoredFeature[] = []): Promise<void> => {
  const current = previous.then(() => migrateFile(file, features))
  previous = current.catch(() => undefined)
  return current.catch(error => {
    throw Object.assign(new Error(`the database ${file}: ${error.message}`, { cause: error }), {
      code: error.code,
    })
  })
}
