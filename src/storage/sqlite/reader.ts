/** Reads on the event loop, with a connection of their own: each takes microseconds, and in WAL mode no writer blocks them. */
import type { Compilable } from 'kysely'
import { ServiceError } from '#base/errors'
import { type Connection, openDatabase, statementCache, storeError } from './database.ts'

/** Milliseconds to wait for another process's lock while opening. */
const OPEN_TIMEOUT = 5_000

/** Reads throw `storeUnavailable` and `internalError`. */
export class Reader {
  readonly #db: Connection
  readonly #statement: ReturnType<typeof statementCache>
  #isUnavailable = false

  constructor(file: string) {
    this.#db = openDatabase(file, OPEN_TIMEOUT)
    this.#statement = statementCache(this.#db)
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

  get<Row>(sql: string, ...parameters: readonly unknown[]): Row | undefined {
    return this.#attempt(() => this.#statement(sql).get(...parameters)) as Row | undefined
  }

  rows<Row>(sql: string, ...parameters: readonly unknown[]): Row[] {
    return this.#attempt(() => this.#statement(sql).all(...parameters)) as Row[]
  }

  all<Row>(query: Compilable<Row>): Row[] {
    const { sql, parameters } = query.compile()
    return this.rows(sql, ...parameters)
  }

  close(): void {
    this.#isUnavailable = true
    this.#db.close()
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
