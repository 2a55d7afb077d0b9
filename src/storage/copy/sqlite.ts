/** SQLite as the source or the target of a copy. */
import { existsSync } from 'node:fs'
import Database from 'better-sqlite3'
import { SELECT_RECORDED } from '../migrations/run.ts'
import type { Schema } from '../migrations/schema.ts'
import type { RecordedRow } from '../migrations/session.ts'
import { stamp } from '../sqlite/database.ts'
import { assertOwnWal } from '../sqlite/database-file.ts'
import { ensureSchema } from '../sqlite/migrate.ts'
import { quoted } from '../stored-feature.ts'
import {
  BATCH,
  type CopiedTable,
  CopyError,
  type CopyStore,
  errorOf,
  type LastNumbers,
  type Role,
  type Row,
} from './store.ts'

/** Milliseconds to wait for another process. */
const LOCK_TIMEOUT = 2_000

const listOf = (names: readonly string[]): string => names.map(quoted).join(', ')

class SqliteStore implements CopyStore {
  readonly engine = 'sqlite'
  readonly #role: Role
  readonly #file: string
  readonly #db: Database.Database

  constructor(role: Role, file: string) {
    this.#role = role
    this.#file = file
    this.#db = this.#attempt(() => {
      assertOwnWal(file)
      return new Database(file, { fileMustExist: true, timeout: LOCK_TIMEOUT })
    })
    try {
      this.#attempt(() => {
        // Before the file is read: a process that has it open then keeps this one from reading it, and this one any other.
        this.#db.pragma('locking_mode = EXCLUSIVE')
        this.#db.pragma('foreign_keys = ON')
        this.#db.pragma('synchronous = FULL')
      })
    } catch (error) {
      this.#db.close()
      throw error
    }
  }

  async recorded(): Promise<readonly RecordedRow[]> {
    return this.#attempt(() => this.#db.prepare<[], RecordedRow>(SELECT_RECORDED).all())
  }

  async begin(): Promise<void> {
    this.#attempt(() => this.#db.exec('BEGIN IMMEDIATE'))
  }

  async columns(table: string): Promise<readonly string[]> {
    const select = 'SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0'
    return this.#attempt(() => this.#db.prepare<[string], string>(select).pluck().all(table))
  }

  async count(table: string): Promise<number> {
    const select = `SELECT count(*) FROM ${quoted(table)}`
    return this.#attempt(() => this.#db.prepare<[], number>(select).pluck().get() ?? 0)
  }

  async lastNumbers(): Promise<LastNumbers> {
    const select = this.#db
      .prepare<[string], number>('SELECT seq FROM sqlite_sequence WHERE name = ?')
      .pluck()
    return { key: select.get('users') ?? 0, position: select.get('events') ?? 0 }
  }

  async *rows({ name, columns }: CopiedTable, order: readonly string[]): AsyncGenerator<readonly Row[]> {
    const orderBy = order.length === 0 ? '' : `ORDER BY ${listOf(order)}`
    const select = this.#db.prepare<[], Row>(`SELECT ${listOf(columns)} FROM ${quoted(name)} ${orderBy}`)
    let rows: Row[] = []
    for (const row of select.raw().safeIntegers().iterate()) {
      rows.push(row)
      if (rows.length < BATCH) continue
      yield rows
      rows = []
    }
    if (rows.length > 0) yield rows
  }

  async clear(table: string): Promise<void> {
    this.#attempt(() => this.#db.exec(`DELETE FROM ${quoted(table)}`), table)
  }

  async add({ name, columns }: CopiedTable, rows: readonly Row[]): Promise<void> {
    this.#attempt(() => {
      const insert = this.#db.prepare(
        `INSERT INTO ${quoted(name)} (${listOf(columns)}) VALUES (${columns.map(() => '?').join(', ')})`,
      )
      for (const row of rows) insert.run(...row)
    }, name)
  }

  async commit({ key, position }: LastNumbers): Promise<void> {
    this.#attempt(() => {
      for (const [table, last] of Object.entries({ users: key, events: position })) {
        this.#db.prepare('DELETE FROM sqlite_sequence WHERE name = ? AND seq < ?').run(table, last)
        this.#db
          .prepare(
            `INSERT INTO sqlite_sequence (name, seq) SELECT ?, ?
             WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?)`,
          )
          .run(table, last, table)
      }
      stamp(this.#db)
      this.#db.exec('COMMIT')
    })
  }

  async close(): Promise<void> {
    this.#db.close()
  }

  #attempt<Result>(work: () => Result, table?: string): Result {
    try {
      return work()
    } catch (error) {
      if (error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY'))
        throw new CopyError(`${this.#role}: a process uses ${this.#file}: stop it, then copy`, {
          cause: error,
        })
      throw errorOf(this.#role, error, table)
    }
  }
}

/** The file is never created. @throws {CopyError} */
export const openSource = (file: string): CopyStore => {
  if (!existsSync(file)) throw new CopyError(`the source: there is no file ${file}`)
  return new SqliteStore('the source', file)
}

/** Creates the file if it is missing, and migrates it. @throws {CopyError} */
export const openTarget = async (file: string, schema: Schema): Promise<CopyStore> => {
  try {
    await ensureSchema(file, schema)
  } catch (error) {
    throw errorOf('the target', error)
  }
  return new SqliteStore('the target', file)
}
