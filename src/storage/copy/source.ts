/** The SQLite store that a copy reads: one read-only snapshot, even while the service writes. */
import { existsSync } from 'node:fs'
import Database from 'better-sqlite3'
import { EVENT_COLUMNS, type EventRow } from '#core/audit-log/event-rows'
import { quoted } from '#core/users/owned-rows'
import { USER_COLUMNS } from '#core/users/user-rows'
import { MIGRATIONS } from '../migrations/known-schema.ts'
import { type NamedTable, type StoredFeature, tablesOf } from '../stored-feature.ts'
import { ACCESS_CHANGES, type AccessChanges, CopyError, type SourceUser } from './plan.ts'
import type { CopiedTable, SourceRow } from './table-statements.ts'

/** A user whom the audit log of the source records as deleted, and who does not exist there again. */
export interface DeletedUser {
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** The key of a row, and the id of the user who owns it; `null` in a table without owners. */
export interface OwnedKey {
  readonly key: string
  readonly userId: string | null
}

/** A batch of rows ends at either: a user may have any number of them, and they may be large. Bytes are of text and blobs. */
const ROW_BATCH = 2_000
const ROW_BATCH_BYTES = 8 * 2 ** 20

/** Milliseconds to wait for another process that recovers the file after a crash. */
const LOCK_TIMEOUT = 5_000

const SELECT_USERS = `SELECT key, factors, ${USER_COLUMNS.join(', ')},
  (SELECT at FROM last_requests WHERE user_key = users.key) AS last_request_at FROM users`

/** The source is only read, so it cannot be migrated. */
const assertSchema = (db: Database.Database, file: string): void => {
  const isOwn = db.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'kysely_migration'`).get()
  if (!isOwn) throw new CopyError(`the source: ${file} is not a database of this service`)
  const names = db.prepare('SELECT name FROM kysely_migration ORDER BY name').pluck().all()
  if (names.join() === MIGRATIONS.join()) return
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

/** Reads `size` rows at a time, in the order of `position`. */
function* paged<Row extends object>(
  select: Database.Statement<[number, number], Row>,
  position: keyof Row,
  after: number,
  size: number,
): Generator<readonly Row[]> {
  for (let rows = select.all(after, size); rows.length > 0; ) {
    yield rows
    rows = select.all(Number(rows.at(-1)?.[position]), size)
  }
}

export class Source {
  readonly #db: Database.Database
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
    } catch (error) {
      if (error instanceof Database.SqliteError) throw new CopyError(`the source: ${file}: ${error.message}`)
      throw error
    }
  }

  count(): number {
    return this.#db.prepare('SELECT count(*) FROM users').pluck().get() as number
  }

  /** All users in the order of their keys, `size` at a time. */
  slices(size: number): Generator<readonly SourceUser[]> {
    return paged(this.#db.prepare(`${SELECT_USERS} WHERE key > ? ORDER BY key LIMIT ?`), 'key', 0, size)
  }

  accessChanges(ids: readonly string[]): readonly AccessChanges[] {
    const select = this.#db.prepare<[string], AccessChanges>(
      `SELECT ${ACCESS_CHANGES} FROM json_each(?) AS given CROSS JOIN users ON users.id = given.value
       LEFT JOIN events ON events.user_id = users.id GROUP BY users.id`,
    )
    return select.all(JSON.stringify(ids))
  }

  /** Users who were deleted after a position of the audit log, `size` at a time, without those whom an import has added again. */
  deletedUsers(after: number, size: number): Generator<readonly DeletedUser[]> {
    const select = this.#db.prepare<[number, number], DeletedUser & { readonly position: number }>(
      `SELECT user_id AS id, at, position FROM events
       WHERE type = 'user.deleted' AND position > ? AND NOT EXISTS (SELECT 1 FROM users WHERE users.id = user_id)
       ORDER BY position LIMIT ?`,
    )
    return paged(select, 'position', after, size)
  }

  /** Identifies the database, by the timestamp of its creation. */
  get identity(): string {
    return this.#db.prepare('SELECT timestamp FROM kysely_migration ORDER BY name').pluck().get() as string
  }

  /** The audit log after a position, `size` events at a time. */
  events(after: number, size: number): Generator<readonly EventRow[]> {
    const select = this.#db.prepare<[number, number], EventRow>(
      `SELECT position, ${EVENT_COLUMNS.join(', ')} FROM events WHERE position > ? ORDER BY position LIMIT ?`,
    )
    return paged(select, 'position', after, size)
  }

  /** The columns of a feature's table, without those that SQLite computes. */
  columns({ name }: NamedTable): readonly string[] {
    return this.#db
      .prepare<[string], string>('SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0')
      .pluck()
      .all(name)
  }

  /**
   * The rows of a table in batches: of these users, or all in the order of their keys. Rows without a user, who was removed, are left out.
   * `CROSS JOIN` fixes the order of the join: the rows of each user are read from the index.
   */
  *rows({ name, owner, key, columns }: CopiedTable, users?: readonly SourceUser[]): Generator<SourceRow[]> {
    const own = `${quoted(name)} AS own`
    const byOwner = owner === null ? '' : `ON users.key = own.${quoted(owner)}`
    const joined = users
      ? `json_each(?) AS given CROSS JOIN users ON users.key = given.value CROSS JOIN ${own} ${byOwner}`
      : `${own} ${owner === null ? '' : `CROSS JOIN users ${byOwner}`} ORDER BY own.${quoted(key)}`
    const select = this.#db
      .prepare<string[], SourceRow>(
        `SELECT ${owner === null ? 'NULL' : 'users.id'}, ${columns.map(column => `own.${quoted(column.name)}`).join(', ')} FROM ${joined}`,
      )
      .raw()
      .safeIntegers()
    let rows: SourceRow[] = []
    let bytes = 0
    for (const row of select.iterate(...(users ? [JSON.stringify(users.map(user => user.key))] : []))) {
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
