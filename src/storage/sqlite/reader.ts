/** Reads on the event loop, with a connection of their own: each takes microseconds, and in WAL mode no writer blocks them. */
import type { Compilable } from 'kysely'
import { ServiceError } from '#base/errors'
import { type Connection, openDatabase, storeError } from './database.ts'

/** Milliseconds to wait for another process's lock while opening. */
const OPEN_TIMEOUT = 5_000

/**
 * Prepared statements that are cached. Frequent reads use about a dozen; lists for administrators have thousands of shapes, and a
 * full cache is emptied.
 */
const MAX_STATEMENTS = 500

interface Statement {
  get(...parameters: readonly unknown[]): unknown
  all(...parameters: readonly unknown[]): unknown[]
}

export class Reader {
  readonly #db: Connection
  /** By SQL text. */
  readonly #statements = new Map<string, Statement>()
  #isUnavailable = false

  constructor(file: string) {
    this.#db = openDatabase(file, OPEN_TIMEOUT)
    this.#db.pragma('query_only = ON')
    // Reads meet a lock only while another process recovers the file after a crash. They fail then, and do not block the event loop.
    this.#db.pragma('busy_timeout = 0')
    // SQLite opens the WAL and its index with the first read.
    this.#db.pragma('data_version')
  }

  /** @param isUnavailable whether reads fail at once, because a restart would open another file. */
  setUnavailable(isUnavailable: boolean): void {
    this.#isUnavailable = isUnavailable
  }

  /** @throws {ServiceError} `storeUnavailable`, `internalError` */
  get<Row>(sql: string, ...parameters: readonly unknown[]): Row | undefined {
    return this.#attempt(() => this.#statement(sql).get(...parameters)) as Row | undefined
  }

  /** @throws {ServiceError} `storeUnavailable`, `internalError` */
  rows<Row>(sql: string, ...parameters: readonly unknown[]): Row[] {
    return this.#attempt(() => this.#statement(sql).all(...parameters)) as Row[]
  }

  /** @throws {ServiceError} `storeUnavailable`, `internalError` */
  all<Row>(query: Compilable<Row>): Row[] {
    const { sql, parameters } = query.compile()
    return this.rows(sql, ...parameters)
  }

  close(): void {
    this.#isUnavailable = true
    this.#db.close()
  }

  #statement(sql: string): Statement {
    let statement = this.#statements.get(sql)
    if (statement === undefined) {
      if (this.#statements.size === MAX_STATEMENTS) this.#statements.clear()
      statement = this.#db.prepare(sql) as Statement
      this.#statements.set(sql, statement)
    }
    return statement
  }

  #attempt<T>(read: () => T): T {
    if (this.#isUnavailable) throw new ServiceError('storeUnavailable')
    try {
      return read()
    } catch (cause) {
      throw storeError(cause)
    }
  }
}
