/** The SQLite store that a copy reads: one read-only snapshot, even while the service writes. */
import { existsSync } from 'node:fs'
import Database from 'better-sqlite3'
import type { EventType } from '../../audit-log/event.ts'
import { migrations } from '../migrations/list.ts'
import { quoted } from '../operations/owned-rows.ts'
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
import { SQLITE_DIALECT } from '../sqlite/migrate.ts'
import { type NamedTable, type StoredFeature, tablesOf } from '../stored-feature.ts'
import { ACCESS_CHANGES, type AccessChanges, CopyError, type SourceUser } from './plan.ts'

/** A session, with the id of its user in place of the source's key. */
export interface SourceSession extends SessionRow {
  readonly user_id: string
}

/** An e-mail token, with the id of its user in place of the source's key. */
export interface SourceEmailToken extends EmailTokenRow {
  readonly user_id: string
}

/** A user whom the audit log of the source records as deleted, and who does not exist there again. */
export interface DeletedUser {
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly at: number
}

/**
 * A row of a feature's table: the id of its owner, `null` in a table without owners, and the values of the columns of the table. An
 * integer is a `bigint`.
 */
export type SourceRow = readonly [
  userId: string | null,
  ...values: readonly (string | number | bigint | Buffer | null)[],
]

/** The key of a row, and the id of the user who owns it; `null` in a table without owners. */
export interface OwnedKey {
  readonly key: string
  readonly userId: string | null
}

/** Events that end sessions of a user, some of them without a change of the user's row. */
const ENDS_SESSIONS: readonly EventType[] = [
  'session.ended',
  'sessions.ended',
  'password.changed',
  'password.reset',
  'user.disabled',
]

/** Sessions in one batch: a user may have any number of them. */
const SESSION_BATCH = 5_000

/** A batch of a feature's rows ends at either: rows may be large. Bytes are of text and blobs. */
const ROW_BATCH = 2_000
const ROW_BATCH_BYTES = 8 * 2 ** 20

/** Milliseconds to wait for another process that recovers the file after a crash. */
const LOCK_TIMEOUT = 5_000

const SELECT_USERS = `SELECT key, factors, ${USER_COLUMNS.join(', ')},
  (SELECT at FROM last_requests WHERE user_key = users.key) AS last_request_at FROM users`

/** `CROSS JOIN` fixes the order of the join: each user's sessions are read from the index. */
const SELECT_SESSIONS = `SELECT user_key, ${SESSION_COLUMNS.map(column => `sessions.${column}`).join(', ')}
  FROM json_each(?) AS given CROSS JOIN sessions ON user_key = given.value`

const SELECT_EMAIL_TOKENS = `SELECT users.id AS user_id, ${EMAIL_TOKEN_COLUMNS.map(column => `email_tokens.${column}`).join(', ')}
  FROM json_each(?) AS given CROSS JOIN users ON users.key = given.value
  CROSS JOIN email_tokens ON email_tokens.user_key = users.key`

const SELECT_WITH_ENDED_SESSIONS = `SELECT DISTINCT events.user_id FROM json_each(?) AS given
  CROSS JOIN events ON events.user_id = given.value
  WHERE events.type IN (${ENDS_SESSIONS.map(type => `'${type}'`).join(', ')})`

/** The source is only read, so it cannot be migrated. */
const assertSchema = (db: Database.Database, file: string): void => {
  const isOwn = db.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'kysely_migration'`).get()
  if (!isOwn) throw new CopyError(`the source: ${file} is not a database of this service`)
  const names = db.prepare('SELECT name FROM kysely_migration ORDER BY name').pluck().all()
  if (names.join() === Object.keys(migrations(SQLITE_DIALECT)).join()) return
  throw new CopyError(
    `the source: ${file} was left by another version of this service: start this version with it once, then copy`,
  )
}

interface RanMigration {
  readonly feature: string
  readonly name: string
}

/** By the name of their feature. A database that no feature has migrated has no table of them. */
const ranMigrations = (db: Database.Database): ReadonlyMap<string, readonly RanMigration[]> => {
  const exists = db.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'feature_migrations'`).get()
  const ran = exists
    ? db.prepare<[], RanMigration>('SELECT feature, name FROM feature_migrations ORDER BY name').all()
    : []
  return Map.groupBy(ran, ({ feature }) => feature)
}

const assertFeatureMigrations = (
  file: string,
  features: readonly StoredFeature[],
  ran: ReadonlyMap<string, readonly RanMigration[]>,
): void => {
  for (const { name: feature, migrations = {} } of features) {
    const names = (ran.get(feature) ?? []).map(({ name }) => name)
    if (names.join() === Object.keys(migrations).sort().join()) continue
    throw new CopyError(
      `the source: ${file} has not run the same migrations of the feature ${feature} as this version has: start this version with it once, then copy`,
    )
  }
}

const bytesOf = (values: SourceRow): number =>
  values.reduce<number>((sum, value) => {
    if (typeof value === 'string') return sum + value.length
    return sum + (Buffer.isBuffer(value) ? value.length : 0)
  }, 0)

export class Source {
  readonly #db: Database.Database
  readonly #sessions: Database.Statement<[string], SessionsTable>
  /** The tables of the features. */
  readonly tables: readonly NamedTable[]
  /** The features that have migrated the source, but are not among those of this version. */
  readonly unknownFeatures: readonly string[]

  /** @throws {CopyError} when the file does not exist, or is not a database of this version. It is never created. */
  constructor(file: string, features: readonly StoredFeature[]) {
    if (!existsSync(file)) throw new CopyError(`the source: there is no file ${file}`)
    try {
      this.#db = new Database(file, { readonly: true, fileMustExist: true, timeout: LOCK_TIMEOUT })
      this.#db.exec('BEGIN')
      assertSchema(this.#db, file)
      const ran = ranMigrations(this.#db)
      assertFeatureMigrations(file, features, ran)
      const known = new Set(features.map(({ name }) => name))
      this.tables = tablesOf(features)
      this.unknownFeatures = [...ran.keys()].filter(name => !known.has(name))
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

  /** The sessions of these users, in batches. */
  *sessions(users: readonly SourceUser[]): Generator<readonly SourceSession[]> {
    const ids = new Map(users.map(({ key, id }) => [key, id]))
    let sessions: SourceSession[] = []
    for (const { user_key, ...session } of this.#sessions.iterate(JSON.stringify([...ids.keys()]))) {
      sessions.push({ ...session, user_id: ids.get(user_key) ?? '' })
      if (sessions.length < SESSION_BATCH) continue
      yield sessions
      sessions = []
    }
    if (sessions.length > 0) yield sessions
  }

  /** The ids of all sessions of these users. */
  sessionIds(users: readonly SourceUser[]): string[] {
    return [...this.sessions(users)].flatMap(sessions => sessions.map(({ id }) => id))
  }

  /** The e-mail tokens of these users: each has few, so all are returned at once. */
  emailTokens(users: readonly SourceUser[]): readonly SourceEmailToken[] {
    const select = this.#db.prepare<[string], SourceEmailToken>(SELECT_EMAIL_TOKENS)
    return select.all(JSON.stringify(users.map(({ key }) => key)))
  }

  emailTokenDigests(users: readonly SourceUser[]): string[] {
    return this.emailTokens(users).map(({ digest }) => digest)
  }

  /** Those of these users for whom the audit log records ended sessions. */
  withEndedSessions(users: readonly SourceUser[]): readonly SourceUser[] {
    const select = this.#db.prepare<[string], string>(SELECT_WITH_ENDED_SESSIONS).pluck()
    const ids = new Set(select.all(JSON.stringify(users.map(({ id }) => id))))
    return users.filter(({ id }) => ids.has(id))
  }

  /** From the audit log. */
  accessChanges(users: readonly SourceUser[]): readonly AccessChanges[] {
    const select = this.#db.prepare<[string], AccessChanges>(
      `SELECT ${ACCESS_CHANGES} FROM json_each(?) AS given
       CROSS JOIN events ON events.user_id = given.value GROUP BY events.user_id`,
    )
    return select.all(JSON.stringify(users.map(({ id }) => id)))
  }

  /** Users who were deleted after a position of the audit log, `size` at a time, without those whom an import has added again. */
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

  /** Identifies the database, by the timestamp of its creation. */
  get identity(): string {
    return this.#db.prepare('SELECT timestamp FROM kysely_migration ORDER BY name').pluck().get() as string
  }

  /** The audit log after a position, `size` events at a time. */
  *events(after: number, size: number): Generator<readonly EventRow[]> {
    const select = this.#db.prepare<[number, number], EventRow>(
      `SELECT position, ${EVENT_COLUMNS.join(', ')} FROM events WHERE position > ? ORDER BY position LIMIT ?`,
    )
    for (let events = select.all(after, size); events.length > 0; ) {
      yield events
      events = select.all(events.at(-1)?.position ?? 0, size)
    }
  }

  /** The columns of a feature's table, without those that SQLite computes. */
  columns({ name }: NamedTable): readonly string[] {
    return this.#db
      .prepare<[string], string>('SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0')
      .pluck()
      .all(name)
  }

  /** The rows of a feature's table in the order of their keys, in batches. Rows without a user, who was removed, are left out. */
  *rows({
    name,
    owner,
    key,
    columns,
  }: NamedTable & { readonly columns: readonly { readonly name: string }[] }): Generator<
    readonly SourceRow[]
  > {
    const [userId, users] =
      owner === null ? ['NULL', ''] : ['users.id', `CROSS JOIN users ON users.key = own.${quoted(owner)}`]
    const select = this.#db
      .prepare<[], SourceRow>(
        `SELECT ${userId}, ${columns.map(column => `own.${quoted(column.name)}`).join(', ')}
         FROM ${quoted(name)} AS own ${users} ORDER BY own.${quoted(key)}`,
      )
      .raw()
      .safeIntegers()
    let rows: SourceRow[] = []
    let bytes = 0
    for (const row of select.iterate()) {
      rows.push(row)
      bytes += bytesOf(row)
      if (rows.length < ROW_BATCH && bytes < ROW_BATCH_BYTES) continue
      yield rows
      rows = []
      bytes = 0
    }
    if (rows.length > 0) yield rows
  }

  /** Those of these keys of a feature's table that the source does not have, although it has their owners. */
  missingKeys({ name, key }: NamedTable, given: readonly OwnedKey[]): readonly string[] {
    const select = this.#db
      .prepare<[string], string>(
        `SELECT value ->> 'key' FROM json_each(?)
         WHERE (value ->> 'userId' IS NULL OR EXISTS (SELECT 1 FROM users WHERE id = value ->> 'userId'))
           AND NOT EXISTS (SELECT 1 FROM ${quoted(name)} AS own WHERE own.${quoted(key)} = value ->> 'key')`,
      )
      .pluck()
    return select.all(JSON.stringify(given))
  }

  close(): void {
    this.#db.close()
  }
}
