/** Reads, on a connection of the event loop's own: microseconds each, and in WAL mode no writer holds them up. */
import type { Compilable } from 'kysely'
import { ServiceError } from '../../errors.ts'
import { type Connection, openDatabase } from './database.ts'

/** Milliseconds to wait for another process's lock at the start. */
const OPEN_TIMEOUT = 5_000

/** What is asked often is a dozen of statements; lists have thousands of shapes, which only administrators ask for. */
const MAX_STATEMENTS = 500

interface Statement {
  get(...parameters: readonly unknown[]): unknown
  all(...parameters: readonly unknown[]): unknown[]
}

export class Reader {
  readonly #db: Connection
  /** By SQL text; values are parameters. */
  readonly #statements = new Map<string, Statement>()
  #isRefusing = false

  constructor(file: string) {
    this.#db = openDatabase(file, OPEN_TIMEOUT)
    this.#db.pragma('query_only = ON')
    // A reader meets a lock only while another process recovers the file after a crash; the event loop never waits.
    this.#db.pragma('busy_timeout = 0')
    // The log and its index are opened with the first read.
    this.#db.pragma('data_version')
  }

  /** Whether nothing is read any more: the file is not the one that a restart would open. */
  refuse(isRefusing: boolean): void {
    this.#isRefusing = isRefusing
  }

  /** @throws {ServiceError} `storeUnavailable` */
  get<Row>(sql: string, ...parameters: readonly unknown[]): Row | undefined {
    return this.#attempt(() => this.#statement(sql).get(...parameters)) as Row | undefined
  }

  /** @throws {ServiceError} `storeUnavailable` */
  rows<Row>(sql: string, ...parameters: readonly unknown[]): Row[] {
    return this.#attempt(() => this.#statement(sql).all(...parameters)) as Row[]
  }

  /** @throws {ServiceError} `storeUnavailable` */
  all<Row>(query: Compilable<Row>): Row[] {
    const { sql, parameters } = query.compile()
    return this.rows(sql, ...parameters)
  }

  close(): void {
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
    if (this.#isRefusing) throw new ServiceError('storeUnavailable')
    try {
      return read()
    } catch (cause) {
      throw new ServiceError('storeUnavailable', { cause })
    }
  }
}
