/** Connections to PostgreSQL: pooled, and with an end to everything that could wait. */
import { Socket } from 'node:net'
import pg from 'pg'
import { ServiceError } from '../../errors.ts'
import type { Write } from '../write.ts'
import { notifyText } from './notifications.ts'

/** Milliseconds until the wait for a connection ends, until the server gives a statement up, and until we give the server up. */
const CONNECT_TIMEOUT = 5_000
const STATEMENT_TIMEOUT = 5_000
const ANSWER_TIMEOUT = 6_000

/** Milliseconds after which a connection that nobody needs is closed. */
const IDLE_TIMEOUT = 30_000

/** Calls that may wait for a connection; whoever comes later is told so at once. */
const MAX_WAITING = 20_000

/** `bigint` is timestamps, numbers of rows and counts here: all of them exact as a number. */
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
export const isAnswer = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.severity === 'ERROR'

/** `read_only_sql_transaction`: a standby, or a server that is to take no more writes. */
const READ_ONLY = '25006'

/** Whether the reason may be that another server has become the primary. */
const isTrouble = (error: unknown): boolean =>
  error instanceof pg.DatabaseError
    ? error.severity !== 'ERROR' || error.code === READ_ONLY
    : !(error instanceof ServiceError)

/** Says which server connections lead to. */
export interface ServerSource {
  /** Of the server to connect to at this timestamp. */
  readonly url: string
  /** What a new connection is asked before its first use; throws when it must not be used. `null`: nothing. */
  readonly check: ((client: pg.ClientBase) => Promise<void>) | null
  /** Is told of what may mean that another server has to be used. */
  suspect(): void
  /** Calls `listener` when `url` has changed: connections to the former server are closed at once. */
  onSwitch(listener: () => void): void
}

const ignore = (): void => undefined

/**
 * Without a listener a connection that breaks would end the process. Whoever uses it learns it from the statement, and the
 * pool makes another one.
 */
export const survive = (pool: pg.Pool): pg.Pool =>
  pool.on('error', ignore).on('connect', client => void client.on('error', ignore))

const unavailable = (cause: unknown): ServiceError => new ServiceError('storeUnavailable', { cause })

export class Database {
  readonly #servers: ServerSource
  readonly #pool: pg.Pool
  /** Of every connection, so that those to a former primary, which may be silent, can be ended without asking it. */
  readonly #sockets = new Set<Socket>()
  readonly #underWay = new Set<Promise<unknown>>()
  readonly #onInvalidated: (userId: string) => void
  #closed = false

  /**
   * @param servers where connections lead to.
   * @param connections how many there may be at once.
   * @param onInvalidated called before a write is acknowledged that made a user's cached state stale.
   */
  constructor(servers: ServerSource, connections: number, onInvalidated: (userId: string) => void) {
    this.#servers = servers
    this.#onInvalidated = onInvalidated
    const stream = (): Socket => this.#newSocket()
    // The pool makes each connection anew of these: so one pool follows the server.
    class Client extends pg.Client {
      constructor() {
        super({ ...connectionOptions(servers.url), stream })
      }
    }
    this.#pool = new pg.Pool({
      connectionTimeoutMillis: CONNECT_TIMEOUT,
      max: connections,
      idleTimeoutMillis: IDLE_TIMEOUT,
      Client,
      ...(servers.check !== null && { onConnect: servers.check }),
    })
    survive(this.#pool)
    servers.onSwitch(() => {
      for (const socket of this.#sockets) socket.destroy()
    })
  }

  /**
   * Runs one statement that reads.
   * @param onStart called when there is a connection for it.
   * @throws {ServiceError} `storeUnavailable`, `overloaded`
   */
  read<Row extends object>(statement: Statement, onStart?: () => void): Promise<readonly Row[]> {
    const work = (run: Run): Promise<readonly Row[]> => {
      onStart?.()
      return run<Row>(statement)
    }
    return this.#use(work, isAnswer)
  }

  /**
   * Runs one statement that writes what no cache holds: new users and sessions, hashes, last requests, expired rows.
   * PostgreSQL commits it by itself. Everything else is written in a {@link transaction}.
   * @throws {ServiceError} `storeUnavailable`, also when it is unknown whether the write has happened; `overloaded`
   */
  writeUncached<Row extends object>(statement: Statement): Promise<readonly Row[]> {
    return this.read<Row>(statement)
  }

  /**
   * Runs several statements as one transaction; each sees what was committed before it. What `work` says that it invalidates
   * is notified to the other instances in the transaction, and evicted here before the promise settles: after a failure too,
   * as only the response to the COMMIT may be lost.
   * @throws {ServiceError} as {@link writeUncached}
   */
  async transaction<Result>(work: (run: Run) => Promise<Write<Result>>): Promise<Result> {
    let userId: string | null = null
    const whole = async (run: Run): Promise<Result> => {
      await run({ text: 'BEGIN ISOLATION LEVEL READ COMMITTED', values: [] })
      const { result, invalidates } = await work(run)
      userId = invalidates
      // One message, so that the notification costs no round trip. After an error that `work` has caught, COMMIT rolls back.
      await run({ text: invalidates === null ? 'COMMIT' : `${notifyText(invalidates)}; COMMIT`, values: [] })
      return result
    }
    try {
      // A transaction that failed may still be open on its connection.
      return await this.#use(whole, () => false)
    } finally {
      if (userId !== null) this.#onInvalidated(userId)
    }
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
      if (isTrouble(error)) this.#servers.suspect()
      throw error instanceof ServiceError ? error : unavailable(error)
    })
    const settled = result.then(ignore, ignore)
    this.#underWay.add(settled)
    void settled.then(() => this.#underWay.delete(settled))
    return result
  }

  #newSocket(): Socket {
    const socket = new Socket()
    this.#sockets.add(socket)
    return socket.once('close', () => this.#sockets.delete(socket))
  }

  async #connect(): Promise<pg.PoolClient> {
    const { url } = this.#servers
    try {
      return await this.#pool.connect()
    } catch (error) {
      // Nothing has been asked yet of the server that another one has replaced meanwhile.
      if (this.#servers.url !== url) return this.#pool.connect()
      throw error
    }
  }

  async #lend<Result>(
    work: (run: Run) => Promise<Result>,
    survives: (error: unknown) => boolean,
  ): Promise<Result> {
    const client = await this.#connect()
    const run = async <Row extends object>({ values, ...statement }: Statement): Promise<readonly Row[]> => {
      const { rows } = await client.query<Row>({ ...statement, values: [...values] })
      return rows
    }
    let reusable = true
    try {
      return await work(run)
    } catch (error) {
      reusable = survives(error) && !isTrouble(error)
      throw error
    } finally {
      client.release(!reusable)
    }
  }
}
