import { closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'

export type Connection = Database.Database

/** What a value of the setting `synchronous` means to SQLite: an acknowledged commit is on disk. */
const SYNCHRONOUS_FULL = 2

/**
 * Opens the database's file, which is created with its folder when missing, both for their owner alone.
 * @param lockTimeout milliseconds to wait for a lock that another process holds.
 * @throws {Error} when it cannot be opened, or would not be durable: better-sqlite3 sets
 * `synchronous=NORMAL` on a file that is already in WAL mode, which may lose the last commits at a power cut.
 */
export const openDatabase = (file: string, lockTimeout: number): Connection => {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  // SQLite would make it readable by everybody, and gives its WAL the mode that it finds.
  closeSync(openSync(file, 'a', 0o600))
  const db = new Database(file, { timeout: lockTimeout })
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
