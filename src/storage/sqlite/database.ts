import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import Database from 'better-sqlite3'
import { syncDirectory } from '../../auth/signing-keys.ts'

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
