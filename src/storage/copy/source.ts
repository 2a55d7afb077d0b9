/** The embedded store as a copy reads it: read-only, as it was at one moment, also while the service goes on writing. */
import { existsSync } from 'node:fs'
import Database from 'better-sqlite3'
import { migrations } from '../migrations/list.ts'
import { SESSION_COLUMNS, type SessionRow, USER_COLUMNS } from '../rows.ts'
import type { SessionsTable } from '../schema.ts'
import { SQLITE_DIALECT } from '../sqlite/schema-dialect.ts'
import { CopyFault } from './fault.ts'
import type { SourceUser } from './plan.ts'

/** A session of the source, with its user's id in place of the source's number. */
export interface SourceSession extends SessionRow {
  readonly user_id: string
}

/** Sessions that are handed over at once: a user may have any number of them. */
const SESSIONS_AT_ONCE = 5_000

/** Milliseconds to wait for a process that recovers the file after a crash. */
const LOCK_TIMEOUT = 5_000

const SELECT_USERS = `SELECT key, ${USER_COLUMNS.join(', ')},
  (SELECT at FROM last_requests WHERE user_key = users.key) AS last_request_at FROM users`

/** CROSS JOIN: in this order, each user's sessions from the index. */
const SELECT_SESSIONS = `SELECT user_key, ${SESSION_COLUMNS.map(column => `sessions.${column}`).join(', ')}
  FROM json_each(?) AS given CROSS JOIN sessions ON user_key = given.value`

/** It cannot be brought up to date here: that would be to write it. */
const assertSchema = (db: Database.Database, file: string): void => {
  const isService = db.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'kysely_migration'`).get()
  if (!isService) throw new CopyFault(`the source: ${file} is not a database of this service`)
  const names = db.prepare('SELECT name FROM kysely_migration ORDER BY name').pluck().all()
  if (names.join() === Object.keys(migrations(SQLITE_DIALECT)).join()) return
  throw new CopyFault(
    `the source: ${file} was left by another version of this service: start this one on it once, then copy`,
  )
}

export class Source {
  readonly #db: Database.Database
  readonly #sessions: Database.Statement<[string], SessionsTable>

  /** @throws {CopyFault} when there is no such file, or it is no database of this version. Nothing is ever created. */
  constructor(file: string) {
    if (!existsSync(file)) throw new CopyFault(`the source: there is no file ${file}`)
    try {
      this.#db = new Database(file, { readonly: true, fileMustExist: true, timeout: LOCK_TIMEOUT })
      this.#db.exec('BEGIN')
      assertSchema(this.#db, file)
      this.#sessions = this.#db.prepare(SELECT_SESSIONS)
    } catch (error) {
      if (error instanceof Database.SqliteError) throw new CopyFault(`the source: ${file}: ${error.message}`)
      throw error
    }
  }

  count(): number {
    return this.#db.prepare('SELECT count(*) FROM users').pluck().get() as number
  }

  /** All users in the order of their keys, `size` at a time. */
  *slices(size: number): Generator<readonly SourceUser[]> {
    const select = this.#db.prepare<[number, number], SourceUser>(
      `${SELECT_USERS} WHERE key > ? ORDER BY key LIMIT ?`,
    )
    for (let users = select.all(0, size); users.length > 0; ) {
      yield users
      users = select.all(users.at(-1)?.key ?? 0, size)
    }
  }

  /** The users with these keys, `size` at a time. */
  *slicesOf(keys: readonly number[], size: number): Generator<readonly SourceUser[]> {
    const select = this.#db.prepare<[string], SourceUser>(
      `${SELECT_USERS} WHERE key IN (SELECT value FROM json_each(?)) ORDER BY key`,
    )
    for (let start = 0; start < keys.length; start += size) {
      yield select.all(JSON.stringify(keys.slice(start, start + size)))
    }
  }

  /** The sessions of these users, some thousand at a time. */
  *sessions(users: readonly SourceUser[]): Generator<readonly SourceSession[]> {
    const ids = new Map(users.map(({ key, id }) => [key, id]))
    let sessions: SourceSession[] = []
    for (const { user_key, ...session } of this.#sessions.iterate(JSON.stringify([...ids.keys()]))) {
      sessions.push({ ...session, user_id: ids.get(user_key) ?? '' })
      if (sessions.length < SESSIONS_AT_ONCE) continue
      yield sessions
      sessions = []
    }
    if (sessions.length > 0) yield sessions
  }

  close(): void {
    this.#db.close()
  }
}
