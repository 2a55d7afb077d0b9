/** Creates and opens database files. */
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import Database from 'better-sqlite3'
import { ServiceError } from '#base/errors'
import { syncDirectory } from '#base/files'
import { isMistake } from '../operations/feature-operation.ts'

export type Connection = Database.Database

/** SQLite's value of `synchronous=FULL`: a commit returns when it is on disk. */
const SYNCHRONOUS_FULL = 2

/**
 * Accessible to the owner only. Syncs the entry of each new folder: SQLite syncs only the database's own, so that a power cut could otherwise
 * remove it with every acknowledged write.
 */
const createFolder = (path: string): void => {
  const folder = resolve(path)
  const first = mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (first === undefined) return
  for (let created = folder; created !== dirname(first); created = dirname(created))
    syncDirectory(dirname(created))
}

/**
 * Creates the file and its folder if they are missing, accessible to their owner only: SQLite would make it readable by everyone. An existing
 * file is not opened, because closing it would drop this process's locks (see `shared-descriptors.ts`).
 */
export const createDatabaseFile = (file: string): void => {
  createFolder(dirname(file))
  if (!existsSync(file)) closeSync(openSync(file, 'a', 0o600))
}

/**
 * `synchronous` is set because better-sqlite3 sets `NORMAL` on a file in WAL mode, with which a power cut may lose the last commits.
 * @param lockTimeout milliseconds. @throws {Error} for a missing file, or not with WAL, `synchronous=FULL` and UTF-8.
 */
export const openDatabase = (file: string, lockTimeout: number): Connection => {
  const db = new Database(file, { timeout: lockTimeout, fileMustExist: true })
  const mode = db.pragma('journal_mode = WAL', { simple: true })
  db.pragma('synchronous = FULL')
  if (mode !== 'wal' || db.pragma('synchronous', { simple: true }) !== SYNCHRONOUS_FULL) {
    db.close()
    throw new Error(`${file} cannot be opened with WAL and synchronous=FULL`)
  }
  // Lists are ordered by the bytes of text, and files of this service are made with this encoding.
  const encoding = db.pragma('encoding', { simple: true })
  if (encoding !== 'UTF-8') {
    db.close()
    throw new Error(
      `its encoding is ${encoding}: name another file, or copy it into one with PRAGMA encoding = 'UTF-8'`,
    )
  }
  db.pragma('foreign_keys = ON')
  db.pragma('cache_size = -32768')
  return db
}

/**
 * Increments SQLite's `user_version`, by which an older state of the database is told from a later one (`file-format.ts`). At most once a
 * transaction: the first stamp of a WAL must be the database's next one.
 */
export const stamp = (db: Connection): void => {
  const last = db.pragma('user_version', { simple: true }) as number
  db.pragma(`user_version = ${(last + 1) | 0}`)
}

/** @param cause is logged, never sent. */
export const storeError = (cause: unknown): ServiceError =>
  new ServiceError(isMistake(cause) ? 'internalError' : 'storeUnavailable', { cause })

/** Of frequent texts there are about fifty. Those of features and lists may have thousands of shapes: a full cache is emptied. */
const MAX_STATEMENTS = 500

export const statementCache = (db: Connection): ((sql: string) => Database.Statement<unknown[]>) => {
  const prepared = new Map<string, Database.Statement<unknown[]>>()
  return sql => {
    let statement = prepared.get(sql)
    if (statement === undefined) {
      statement = db.prepare<unknown[]>(sql)
      if (prepared.size === MAX_STATEMENTS) prepared.clear()
      prepared.set(sql, statement)
    }
    return statement
  }
}
