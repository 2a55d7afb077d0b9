/** Opening, creating and migrating a database file. */
import { randomInt } from 'node:crypto'
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import Database from 'better-sqlite3'
import { Kysely, SqliteDialect, sql } from 'kysely'
import { Migrator } from 'kysely/migration'
import { syncDirectory } from '../../auth/secret-file.ts'
import { migrations } from '../migrations/list.ts'
import type { SchemaDialect } from '../migrations/schema-dialect.ts'
import { assertOwnWal } from './database-file.ts'

export type Connection = Database.Database

/** SQLite's value of `synchronous=FULL`: a commit returns when it is on disk. */
const SYNCHRONOUS_FULL = 2

/**
 * Creates a folder with its parents, accessible to their owner only, and syncs the entry of each new folder. SQLite syncs only
 * the database's own folder, so a power cut could otherwise remove that folder with every acknowledged write.
 */
const createFolder = (path: string): void => {
  const folder = resolve(path)
  const first = mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (first === undefined) return
  for (let created = folder; created !== dirname(first); created = dirname(created))
    syncDirectory(dirname(created))
}

/**
 * Creates the database file and its folder when they are missing, accessible to their owner only. SQLite would make the file
 * readable by everyone, and gives the WAL the mode of the database. An existing file is not opened: closing it would drop the
 * locks of every connection that this process has to it (see `shared-descriptors.ts`).
 */
export const createDatabaseFile = (file: string): void => {
  createFolder(dirname(file))
  if (!existsSync(file)) closeSync(openSync(file, 'a', 0o600))
}

/**
 * Opens a database file, which must exist. `synchronous` is set explicitly because better-sqlite3 sets `NORMAL` on a file that is
 * already in WAL mode, with which a power cut may lose the last commits.
 * @param lockTimeout milliseconds to wait for a lock that another process holds.
 * @throws {Error} when the file cannot be opened, or not with WAL and `synchronous=FULL`.
 */
export const openDatabase = (file: string, lockTimeout: number): Connection => {
  const db = new Database(file, { timeout: lockTimeout, fileMustExist: true })
  const mode = db.pragma('journal_mode = WAL', { simple: true })
  db.pragma('synchronous = FULL')
  if (mode !== 'wal' || db.pragma('synchronous', { simple: true }) !== SYNCHRONOUS_FULL) {
    db.close()
    throw new Error(`${file} cannot be opened with WAL and synchronous=FULL`)
  }
  db.pragma('foreign_keys = ON')
  db.pragma('cache_size = -32768')
  return db
}

/**
 * Increments the database's stamp (SQLite's `user_version`), by which an older state of the database is distinguished from a
 * later one (`file-format.ts`). At most once per transaction: the first stamp of a WAL must be the database's next one.
 */
export const stamp = (db: Connection): void => {
  const last = db.pragma('user_version', { simple: true }) as number
  db.pragma(`user_version = ${(last + 1) | 0}`)
}

export const SQLITE_DIALECT: SchemaDialect = {
  keyType: 'integer',
  identity: column => column.autoIncrement(),
  text: 'text',
  // The primary key is the id: `WITHOUT ROWID` saves a second B-tree lookup.
  sessionsOptions: sql`without rowid`,
  lastRequestsOptions: null,
  appendOnlyOptions: sql`without rowid`,
  // Each table row that is not in memory costs a disk read: 50 to 80 ms per 1,000 rows. Covering indexes avoid these reads. They
  // take 50 MB of 590 MB at a million users, and do not measurably slow down an insert (150 µs).
  coveringIndexes: true,
  singleWriter: true,
  // Each process counts in memory.
  sharedRateLimits: false,
}

/** Milliseconds to wait for another process's migration. */
const LOCK_TIMEOUT = 30_000

/** The first stamp of a database is random below this bound, so that two databases are unlikely to have similar ones. */
const MAX_FIRST_STAMP = 2 ** 30

const migrateFile = async (file: string): Promise<void> => {
  assertOwnWal(file)
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
export const migrate = (file: string): Promise<void> => {
  const current = previous.then(() => migrateFile(file))
  previous = current.catch(() => undefined)
  return current.catch(error => {
    throw Object.assign(new Error(`the database ${file}: ${error.message}`, { cause: error }), {
      code: error.code,
    })
  })
}
