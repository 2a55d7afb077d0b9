/** PostgreSQL as the source or the target of a copy. */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { SELECT_RECORDED } from '../migrations/run.ts'
import type { Schema } from '../migrations/schema.ts'
import type { RecordedRow } from '../migrations/session.ts'
import { Connection, connectionOptions } from '../postgres/connection.ts'
import { reason } from '../postgres/database.ts'
import { migratePrimary } from '../postgres/ensure-schema.ts'
import { NEXT_POSITION, raiseEventShift } from '../postgres/event-positions.ts'
import { PrimaryServer } from '../postgres/primary-server.ts'
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

/** Milliseconds that a statement may take on the server, and that the client waits for its result. */
const STATEMENT_TIMEOUT = 600_000
const QUERY_TIMEOUT = 610_000

/** Milliseconds for which connections that are ending may still be listed. */
const ENDING = 3_000

const { BOOL, BYTEA } = pg.types.builtins

/** Text is exact for every type and what both engines read, except for bytes and Booleans, which SQLite does not have. */
const types = {
  getTypeParser: (oid: number) => {
    if (oid === BYTEA) return pg.types.getTypeParser(BYTEA)
    return (text: string) => (oid === BOOL ? Number(text === 't') : text)
  },
} as pg.CustomTypesConfig

const COLUMNS = `SELECT attname AS name, format_type(atttypid, -1) AS type FROM pg_attribute
  WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum`

const OTHER_PROCESSES = `SELECT 1 FROM pg_stat_activity
  WHERE datname = current_database() AND application_name = 'gatehouse' AND pid <> pg_backend_pid()`

const LAST_KEY = `coalesce(pg_sequence_last_value(pg_get_serial_sequence('users', 'key')), 0)`

const listOf = (names: readonly string[]): string => names.map(quoted).join(', ')

class PostgresStore implements CopyStore {
  readonly engine = 'postgres'
  readonly #role: Role
  readonly #client: Connection
  /** By table: the type of each column. Without a length: a cast to `varchar(10)` would cut values that an insertion refuses. */
  readonly #types = new Map<string, ReadonlyMap<string, string>>()

  private constructor(role: Role, client: Connection) {
    this.#role = role
    this.#client = client
  }

  static async open(role: Role, findServer: () => Promise<PrimaryServer>): Promise<PostgresStore> {
    try {
      const { url } = await findServer()
      const client = new Connection({
        ...connectionOptions(url),
        statementTimeout: STATEMENT_TIMEOUT,
        query_timeout: QUERY_TIMEOUT,
      })
      await client.connect()
      return new PostgresStore(role, client)
    } catch (error) {
      throw new CopyError(`${role}: ${reason(error)}`, { cause: error })
    }
  }

  recorded(): Promise<readonly RecordedRow[]> {
    return this.#run(SELECT_RECORDED)
  }

  /**
   * Locks the tables: readers go on, and other processes cannot write. So the transaction of a source may begin with an older snapshot, and
   * that of a target with empty tables.
   */
  async begin(tables: readonly string[], last?: LastNumbers): Promise<void> {
    await this.#assertUnused()
    const isSource = last === undefined
    // The positions of all later events are behind those that a cursor of the source may name.
    if (!isSource) await this.#attempt(() => raiseEventShift(this.#client, last.position))
    await this.#run(isSource ? 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY' : 'BEGIN')
    await this.#run(`SET LOCAL lock_timeout = '10s'`)
    await this.#run(`LOCK TABLE ${listOf(tables)} IN ${isSource ? 'SHARE' : 'SHARE ROW EXCLUSIVE'} MODE`)
  }

  async columns(table: string): Promise<readonly string[]> {
    const found = await this.#run<{ name: string; type: string }>(COLUMNS, [quoted(table)])
    this.#types.set(table, new Map(found.map(({ name, type }) => [name, type])))
    return found.map(({ name }) => name)
  }

  async count(table: string): Promise<number> {
    const [row] = await this.#run<{ count: number }>(`SELECT count(*) AS count FROM ${quoted(table)}`)
    return row?.count ?? 0
  }

  async lastNumbers(): Promise<LastNumbers> {
    const select = `SELECT ${LAST_KEY} AS key, ${NEXT_POSITION} AS position`
    const [last = { key: 0, position: 0 }] = await this.#run<LastNumbers>(select)
    return last
  }

  async *rows({ name, columns }: CopiedTable, order: readonly string[]): AsyncGenerator<readonly Row[]> {
    const orderBy = order.length === 0 ? '' : `ORDER BY ${listOf(order)}`
    await this.#run(
      `DECLARE copied NO SCROLL CURSOR FOR SELECT ${listOf(columns)} FROM ${quoted(name)} ${orderBy}`,
    )
    const fetch = { text: `FETCH ${BATCH} FROM copied`, rowMode: 'array' as const, types }
    for (;;) {
      const { rows } = await this.#attempt(() => this.#client.query<[...Row]>(fetch))
      if (rows.length > 0) yield rows
      if (rows.length < BATCH) break
    }
    await this.#run('CLOSE copied')
  }

  async clear(table: string): Promise<void> {
    await this.#run(`DELETE FROM ${quoted(table)}`, [], table)
  }

  async add({ name, columns }: CopiedTable, rows: readonly Row[]): Promise<void> {
    const columnTypes = this.#types.get(name)
    const arrays = columns.map((column, index) => `$${index + 1}::${columnTypes?.get(column)}[]`)
    await this.#run(
      `INSERT INTO ${quoted(name)} (${listOf(columns)}) OVERRIDING SYSTEM VALUE SELECT * FROM unnest(${arrays.join(', ')})`,
      columns.map((_, index) => rows.map(row => row[index])),
      name,
    )
  }

  async commit({ key }: LastNumbers): Promise<void> {
    if (key > 0) await this.#run(`SELECT setval(pg_get_serial_sequence('users', 'key'), $1)`, [key])
    await this.#run('COMMIT')
  }

  async close(): Promise<void> {
    await this.#client.end()
  }

  async #assertUnused(): Promise<void> {
    for (let waited = 0; (await this.#run(OTHER_PROCESSES)).length > 0; waited += 100) {
      if (waited >= ENDING)
        throw new CopyError(
          `${this.#role}: a process of the service is connected to the database: stop it, then copy`,
        )
      await sleep(100)
    }
  }

  async #attempt<Result>(work: () => Promise<Result>, table?: string): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      throw errorOf(this.#role, error, table)
    }
  }

  async #run<Found extends object>(
    text: string,
    values: readonly unknown[] = [],
    table?: string,
  ): Promise<readonly Found[]> {
    const { rows } = await this.#attempt(() => this.#client.query<Found>(text, [...values]), table)
    return rows
  }
}

export const openSource = (url: string): Promise<CopyStore> =>
  PostgresStore.open('the source', () => PrimaryServer.open(url))

/** Migrates the database. @throws {CopyError} */
export const openTarget = (url: string, schema: Schema): Promise<CopyStore> =>
  PostgresStore.open('the target', () => migratePrimary(url, schema))
