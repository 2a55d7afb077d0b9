/** Connections to PostgreSQL: pooled, and with an end to everything that could wait. */
import pg from 'pg'
import { ServiceError } from '../../errors.ts'

/** Milliseconds until the wait for a connection ends, until the server gives a statement up, and until we give the server up. */
const CONNECT_TIMEOUT = 5_000
const STATEMENT_TIMEOUT = 5_000
const ANSWER_TIMEOUT = 6_000

/** Milliseconds after which a connection that nobody needs is closed. */
const IDLE_TIMEOUT = 30_000

/** Calls that may wait for a connection; whoever comes later is told so at once. */
const MAX_WAITING = 20_000

/** `bigint` is moments, numbers of rows and counts here: all of them exact as a number. */
const types = {
  getTypeParser: ((oid: number, format?: 'text') =>
    oid === pg.types.builtins.INT8
      ? Number
      : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
}

/** How every connection is made. */
export const connectionOptions = (url: string): pg.ClientConfig => ({
  connectionString: url,
  application_name: 'gatehouse',
  connectionTimeoutMillis: CONNECT_TIMEOUT,
  statement_timeout: STATEMENT_TIMEOUT,
  query_timeout: ANSWER_TIMEOUT,
  keepAlive: true,
  types,
})

export interface Statement {
  /** Prepared under this name where there is one: for those that are always the same text. */
  readonly name?: string
  readonly text: string
  readonly values: readonly unknown[]
}

/** Runs one statement on a connection. @throws what PostgreSQL or the connection failed with. */
export type Run = <Row extends object>(statement: Statement) => Promise<readonly Row[]>

/** A connection's failure in a sentence: the one to every address of a name has none of its own. */
export const reason = (error: unknown): string => {
  if (error instanceof AggregateError) return error.errors.map(reason).join(', ')
  return error instanceof Error ? error.message : String(error)
}

/** PostgreSQL has answered, with an error: the connection is as good as before. */
const isAnswer = (error: unknown): boolean => error instanceof pg.DatabaseError && error.severity === 'ERROR'

const ignore = (): void => undefined

/**
 * Without a listener a connection that breaks would end the process. Whoever uses it learns it from the statement, and the
 * pool makes another one.
 */
export const survive = (pool: pg.Pool): pg.Pool =>
  pool.on('error', ignore).on('connect', client => void client.on('error', ignore))

const unavailable = (cause: unknown): ServiceError => new ServiceError('storeUnavailable', { cause })

export class Database {
  readonly #pool: pg.Pool
  readonly #underWay = new Set<Promise<unknown>>()
  #closed = false

  /** @param connections how many there may be at once. */
  constructor(url: string, connections: number) {
    this.#pool = new pg.Pool({ ...connectionOptions(url), max: connections, idleTimeoutMillis: IDLE_TIMEOUT })
    survive(this.#pool)
  }

  /**
   * Runs one statement, which PostgreSQL commits by itself.
   * @param onStart called when there is a connection for it.
   * @throws {ServiceError} `storeUnavailable`, also where it is not known whether a write has happened; `overloaded`
   */
  run<Row extends object>(statement: Statement, onStart?: () => void): Promise<readonly Row[]> {
    const work = (run: Run): Promise<readonly Row[]> => {
      onStart?.()
      return run<Row>(statement)
    }
    return this.#use(work, isAnswer)
  }

  /** Runs several statements as a whole, each of which sees what was committed before it. @throws {ServiceError} as {@link run} */
  transaction<Result>(work: (run: Run) => Promise<Result>): Promise<Result> {
    const whole = async (run: Run): Promise<Result> => {
      await run({ text: 'BEGIN ISOLATION LEVEL READ COMMITTED', values: [] })
      const result = await work(run)
      // After an error that `work` has caught, this rolls back.
      await run({ text: 'COMMIT', values: [] })
      return result
    }
    // One that failed may still be open on its connection.
    return this.#use(whole, () => false)
  }

  /** Waits for what is under way, then closes every connection. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await Promise.all(this.#underWay)
    await this.#pool.end()
  }

  /** @param survives whether the connection is of use after an error. */
  #use<Result>(work: (run: Run) => Promise<Result>, survives: (error: unknown) => boolean): Promise<Result> {
    if (this.#closed) return Promise.reject(unavailable(new Error('The store is closed')))
    if (this.#pool.waitingCount >= MAX_WAITING) return Promise.reject(new ServiceError('overloaded'))
    const result = this.#lend(work, survives).catch(error => {
      throw error instanceof ServiceError ? error : unavailable(error)
    })
    const settled = result.then(ignore, ignore)
    this.#underWay.add(settled)
    void settled.then(() => this.#underWay.delete(settled))
    return result
  }

  async #lend<Result>(
    work: (run: Run) => Promise<Result>,
    survives: (error: unknown) => boolean,
  ): Promise<Result> {
    const client = await this.#pool.connect()
    const run = async <Row extends object>({ values, ...statement }: Statement): Promise<readonly Row[]> => {
      const { rows } = await client.query<Row>({ ...statement, values: [...values] })
      return rows
    }
    let reusable = true
    try {
      return await work(run)
    } catch (error) {
      reusable = survives(error)
      throw error
    } finally {
      client.release(!reusable)
    }
  }
}
