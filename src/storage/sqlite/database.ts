import { randomInt } from 'node:crypto'
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import Database from 'better-sqlite3'
import { Kysely, SqliteDialect, sql } from 'kysely'
import { Migrator } from 'kysely/migration'
import { syncDirectory } from '../../auth/secret-file.ts'
import { migrations } from '../migrations/list.ts'
import type { SchemaDialect } from '../migrations/schema-dialect.ts'
import { assertOwnLog } from './database-file.ts'

export type Connection = Database.Database

/** What a value of the setting `synchronous` means to SQLite: an acknowledged commit is on disk. */
const SYNCHRONOUS_FULL = 2

/**
 * Creates a folder, accessible to its owner only. Its entry in the parent folder is synced, since SQLite syncs only the
 * entries inside: without that, a power cut could remove the folder with every acknowledged write.
 */
const makeFolder = (path: string): void => {
  const folder = resolve(path)
  const first = mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (first === undefined) return
  for (let made = folder; made !== dirname(first); made = dirname(made)) syncDirectory(dirname(made))
}

/**
 * Creates the database's file with its folder when it is missing, both for their owner alone: SQLite would make it readable
 * by everybody, and gives its WAL the mode that it finds. A file that is there is not opened: to close it again would drop
 * the locks of every connection that this process has to it.
 */
export const createDatabaseFile = (file: string): void => {
  makeFolder(dirname(file))
  if (!existsSync(file)) closeSync(openSync(file, 'a', 0o600))
}

/**
 * Opens the database's file, which has to be there.
 * @param lockTimeout milliseconds to wait for a lock that another process holds.
 * @throws {Error} when it cannot be opened, or would not be durable: better-sqlite3 sets
 * `synchronous=NORMAL` on a file that is already in WAL mode, which may lose the last commits at a power cut.
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
 * Counts the database's stamp up (SQLite's `user_version`): by it an older state of the database is told from a later one
 * (`file-format.ts`). Once a transaction: a log may begin one after what the database has.
 */
export const stamp = (db: Connection): void => {
  const last = db.pragma('user_version', { simple: true }) as number
  db.pragma(`user_version = ${(last + 1) | 0}`)
}

export const SQLITE_DIALECT: SchemaDialect = {
  keyType: 'integer',
  identity: column => column.autoIncrement(),
  text: 'text',
  // The id finds the row itself, without a second tree between them.
  sessionsOptions: sql`without rowid`,
  lastRequestsOptions: null,
  appendedOptions: sql`without rowid`,
  // A row of the table that is not in memory is a read of the disk each, 1,000 of them 50 to 80 ms. That costs 50 MB of 590
  // at a million users; an insert takes as long as without, within what can be measured (150 µs).
  coveringIndexes: true,
  oneWriter: true,
  // One process counts in its own memory.
  sharedRateLimits: false,
}

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
