/** The embedded store as a copy reads it: read-only, as it was at one timestamp, also while the service goes on writing. */
import { existsSync } from 'node:fs'
import Database from 'better-sqlite3'
import type { EventType } from '../../audit-log/event.ts'
import { migrations } from '../migrations/list.ts'
import {
  EMAIL_TOKEN_COLUMNS,
  type EmailTokenRow,
  EVENT_COLUMNS,
  type EventRow,
  SESSION_COLUMNS,
  type SessionRow,
  USER_COLUMNS,
} from '../rows.ts'
import type { SessionsTable } from '../schema.ts'
import { SQLITE_DIALECT } from '../sqlite/database.ts'
import { ACCESS_CHANGES, type AccessChanges, CopyError, type SourceUser } from './plan.ts'

/** A session of the source, with its user's id in place of the source's number. */
export interface SourceSession extends SessionRow {
  readonly user_id: string
}

/** An e-mail token of the source, with its user's id in place of the source's number. */
export interface SourceEmailToken extends EmailTokenRow {
  readonly user_id: string
}

/** A user who was deleted in the source, by its audit log, and is not there again. */
export interface DeletedUser {
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** An event with its position, which is in the order of the source's commits. */
export type SourceEvent = EventRow

/** Events after which sessions of a user are gone, while the user's own row may be as before. */
const ENDS_SESSIONS: readonly EventType[] = [
  'session.ended',
  'sessions.ended',
  'password.changed',
  'password.reset',
  'user.disabled',
]

/** Sessions that are handed over at once: a user may have any number of them. */
const SESSIONS_AT_ONCE = 5_000

/** Milliseconds to wait for a process that recovers the file after a crash. */
const LOCK_TIMEOUT = 5_000

const SELECT_USERS = `SELECT key, ${USER_COLUMNS.join(', ')},
  (SELECT at FROM last_requests WHERE user_key = users.key) AS last_request_at FROM users`

/** CROSS JOIN: in this order, each user's sessions from the index. */
const SELECT_SESSIONS = `SELECT user_key, ${SESSION_COLUMNS.map(column => `sessions.${column}`).join(', ')}
  FROM json_each(?) AS given CROSS JOIN sessions ON user_key = given.value`

const SELECT_EMAIL_TOKENS = `SELECT users.id AS user_id, ${EMAIL_TOKEN_COLUMNS.map(column => `email_tokens.${column}`).join(', ')}
  FROM json_each(?) AS given CROSS JOIN users ON users.key = given.value
  CROSS JOIN email_tokens ON email_tokens.user_key = users.key`

const SELECT_WITH_ENDED_SESSIONS = `SELECT DISTINCT events.user_id FROM json_each(?) AS given
  CROSS JOIN events ON events.user_id = given.value
  WHERE events.type IN (${ENDS_SESSIONS.map(type => `'${type}'`).join(', ')})`

/** It cannot be brought up to date here: that would be to write it. */
const assertSchema = (db: Database.Database, file: string): void => {
  const isService = db.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'kysely_migration'`).get()
  if (!isService) throw new CopyError(`the source: ${file} is not a database of this service`)
  const names = db.prepare('SELECT name FROM kysely_migration ORDER BY name').pluck().all()
  if (names.join() === Object.keys(migrations(SQLITE_DIALECT)).join()) return
  throw new CopyError(
    `the source: ${file} was left by another version of this service: start this one on it once, then copy`,
  )
}

export class Source {
  readonly #db: Database.Database
  readonly #sessions: Database.Statement<[string], SessionsTable>

  /** @throws {CopyError} when there is no such file, or it is no database of this version. Nothing is ever created. */
  constructor(file: string) {
    if (!existsSync(file)) throw new CopyError(`the source: there is no file ${file}`)
    try {
      this.#db = new Database(file, { readonly: true, fileMustExist: true, timeout: LOCK_TIMEOUT })
      this.#db.exec('BEGIN')
      assertSchema(this.#db, file)
      this.#sessions = this.#db.prepare(SELECT_SESSIONS)
    } catch (error) {
      if (error instanceof Database.SqliteError) throw new CopyError(`the source: ${file}: ${error.message}`)
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

  /** The ids of all sessions of these users. */
  sessionIds(users: readonly SourceUser[]): string[] {
    return [...this.sessions(users)].flatMap(sessions => sessions.map(({ id }) => id))
  }

  /** The e-mail tokens of these users, a few for each. */
  emailTokens(users: readonly SourceUser[]): readonly SourceEmailToken[] {
    const select = this.#db.prepare<[string], SourceEmailToken>(SELECT_EMAIL_TOKENS)
    return select.all(JSON.stringify(users.map(({ key }) => key)))
  }

  emailTokenDigests(users: readonly SourceUser[]): string[] {
    return this.emailTokens(users).map(({ digest }) => digest)
  }

  /** Those among these users who have had sessions ended, by the audit log. */
  withEndedSessions(users: readonly SourceUser[]): readonly SourceUser[] {
    const select = this.#db.prepare<[string], string>(SELECT_WITH_ENDED_SESSIONS).pluck()
    const ids = new Set(select.all(JSON.stringify(users.map(({ id }) => id))))
    return users.filter(({ id }) => ids.has(id))
  }

  /** What the audit log tells of these users' access. */
  accessChanges(users: readonly SourceUser[]): readonly AccessChanges[] {
    const select = this.#db.prepare<[string], AccessChanges>(
      `SELECT ${ACCESS_CHANGES} FROM json_each(?) AS given
       CROSS JOIN events ON events.user_id = given.value GROUP BY events.user_id`,
    )
    return select.all(JSON.stringify(users.map(({ id }) => id)))
  }

  /** Users who were deleted behind a position of the audit log, `size` at a time. An import may have brought some back. */
  *deletedUsers(after: number, size: number): Generator<readonly DeletedUser[]> {
    const select = this.#db.prepare<[number, number], DeletedUser & { readonly position: number }>(
      `SELECT user_id AS id, at, position FROM events
       WHERE type = 'user.deleted' AND position > ? AND NOT EXISTS (SELECT 1 FROM users WHERE users.id = user_id)
       ORDER BY position LIMIT ?`,
    )
    for (let deleted = select.all(after, size); deleted.length > 0; ) {
      yield deleted
      deleted = select.all(deleted.at(-1)?.position ?? 0, size)
    }
  }

  /** Tells this database from any other: when it was created. */
  get identity(): string {
    return this.#db.prepare('SELECT timestamp FROM kysely_migration ORDER BY name').pluck().get() as string
  }

  /** The audit log behind a position, `size` events at a time. */
  *events(after: number, size: number): Generator<readonly SourceEvent[]> {
    const select = this.#db.prepare<[number, number], SourceEvent>(
      `SELECT position, ${EVENT_COLUMNS.join(', ')} FROM events WHERE position > ? ORDER BY position LIMIT ?`,
    )
    for (let events = select.all(after, size); events.length > 0; ) {
      yield events
      events = select.all(events.at(-1)?.position ?? 0, size)
    }
  }

  close(): void {
    this.#db.close()
  }
}
