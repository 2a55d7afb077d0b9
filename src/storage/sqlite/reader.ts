/** Reads, on a connection of the event loop's own: microseconds each, and in WAL mode no writer holds them up. */
import {
  type Compilable,
  DummyDriver,
  Kysely,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import { ServiceError } from '../../errors.ts'
import type { DatabaseSchema } from '../schema.ts'
import { type Connection, openDatabase } from './database.ts'

/** Kysely as a writer of SQL alone: its own driver would prepare every query anew. */
export const queries = new Kysely<DatabaseSchema>({
  dialect: {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: db => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  },
})

/** Milliseconds to wait for another process's lock at the start. */
const OPEN_TIMEOUT = 5_000

interface Statement {
  get(...parameters: readonly unknown[]): unknown
  all(...parameters: readonly unknown[]): unknown[]
}

export class Reader {
  readonly #db: Connection
  /** By SQL text. Values are parameters, so there are as many as query shapes: some hundreds. */
  readonly #statements = new Map<string, Statement>()

  constructor(file: string) {
    this.#db = openDatabase(file, OPEN_TIMEOUT)
    this.#db.pragma('query_only = ON')
    // A reader meets a lock only while another process recovers the file after a crash; the event loop never waits.
    this.#db.pragma('busy_timeout = 0')
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
      statement = this.#db.prepare(sql) as Statement
      this.#statements.set(sql, statement)
    }
    return statement
  }

  #attempt<T>(read: () => T): T {
    try {
      return read()
    } catch (cause) {
      throw new ServiceError('storeUnavailable', { cause })
    }
  }
}
