/** Pooled connections to PostgreSQL, with a timeout for everything that can wait. */
import { Socket } from 'node:net'
import pg from 'pg'
import { ServiceError } from '#base/errors'
import { OperationError } from '../operations/feature-operation.ts'
import { isRefused, type Write } from '../operations/write.ts'
import type { PoolStatistics } from '../statistics.ts'
import {
  CONNECT_TIMEOUT,
  Connection,
  type ConnectionOptions,
  connectionOptions,
  type Statement,
} from './connection.ts'
import { type LeaseRow, type PendingWrite, PROOF_OF_PRIMARY, ProcessLeases } from './process-leases.ts'

/**
 * Milliseconds after which the server ends a transaction whose next statement does not arrive, because the process is frozen or its
 * network is cut: the locks of its user would last as long. Less than the limit of a statement, so that a change of the user elsewhere
 * waits, and succeeds.
 */
const IDLE_IN_TRANSACTION_TIMEOUT = 3_000

/**
 * Begins a transaction that the server ends when it is idle for that long. One message, so it costs no round trip. Not a parameter of
 * the connection: PgBouncer refuses those it does not know.
 */
export const begin = (idleTimeout: number): Statement => ({
  text: `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = ${idleTimeout}`,
  values: [],
})

const BEGIN = begin(IDLE_IN_TRANSACTION_TIMEOUT)

/** Milliseconds after which an unused connection is closed. */
const IDLE_TIMEOUT = 30_000

/** Calls that may wait for a connection. Further ones are rejected at once. */
const MAX_WAITING = 20_000

/** The channel on which transactions notify every instance of users and admin keys whose cached state is stale. */
export const CHANNEL = 'gatehouse_changes'

/** Notifies of one user or admin key; as text, so that it can be sent in one message with a COMMIT. */
const notifyText = (id: string): string => `NOTIFY ${CHANNEL}, ${pg.escapeLiteral(id)}`

export type { Statement } from './connection.ts'

/** Runs one statement on a connection. @throws what PostgreSQL or the connection failed with. */
export type Run = <Row extends object>(statement: Statement) => Promise<readonly Row[]>

/** Runs one statement that reads, on any server that may serve it. */
export interface Reader {
  /** @throws {ServiceError} `storeUnavailable`, `overloaded` */
  read<Row extends object>(statement: Statement): Promise<readonly Row[]>
}

/** The message of a connection error. An AggregateError, for the addresses of a host name, has no message of its own. */
export const reason = (error: unknown): string => {
  if (error instanceof AggregateError) return error.errors.map(reason).join(', ')
  return error instanceof Error ? error.message : String(error)
}

/** The class of an SQLSTATE (PostgreSQL, Appendix A). */
const classOf = ({ code = '' }: pg.DatabaseError): string => code.slice(0, 2)

/** `read_only_sql_transaction`: a standby, or a server that takes no writes any more. */
const READ_ONLY_TRANSACTION = '25006'

/**
 * Classes of errors that pass, or that an operator of the server ends: of connections and roles (08, 28, 3D), conflicts (40), a lack of
 * resources (53), intervention and limits of time (57), the disk (58), corruption (XX).
 */
const OUTAGES: ReadonlySet<string> = new Set(['08', '28', '3D', '40', '53', '57', '58', 'XX'])

/** Outages in other classes: a read-only server, transactions that the server has ended, `lock_not_available`. */
const OUTAGE_CODES: ReadonlySet<unknown> = new Set([READ_ONLY_TRANSACTION, '25P03', '25P04', '55P03'])

/**
 * Whether an error of PostgreSQL is an outage, which passes. Others are errors of data, of a statement or of settings, which a
 * repeated request would meet again.
 */
const isOutage = (error: pg.DatabaseError): boolean =>
  OUTAGES.has(classOf(error)) || OUTAGE_CODES.has(error.code)

/** Codes after which the server closes the connection. Not told by the severity, whose name is in the language of the server. */
const ENDS_CONNECTION: ReadonlySet<unknown> = new Set([
  ...['25P03', '25P04', '53300', '57P01', '57P02', '57P03', '57P04', '57P05'],
])

/** Whether PostgreSQL responded with an error of the statement, after which the connection is usable. */
export const isStatementError = (error: unknown): error is pg.DatabaseError =>
  error instanceof pg.DatabaseError &&
  !ENDS_CONNECTION.has(error.code) &&
  !['08', '28', '3D', 'XX'].includes(classOf(error))

/** `serialization_failure`, `deadlock_detected`: the server has rolled the transaction back because of a concurrent one. */
const CONFLICTS: ReadonlySet<unknown> = new Set(['40001', '40P01'])

/** How often a transaction is run before such an error is final. Each deadlock takes `deadlock_timeout`, by default a second. */
const MAX_ATTEMPTS = 3

const isConflict = (error: unknown): boolean => error instanceof pg.DatabaseError && CONFLICTS.has(error.code)

/** Whether the cause may be that another server has become the primary. */
const mayBeFailover = (error: unknown): boolean =>
  error instanceof pg.DatabaseError
    ? !isStatementError(error) || error.code === READ_ONLY_TRANSACTION
    : !(error instanceof ServiceError || error instanceof OperationError)

/** Chooses the server of every connection. */
export interface ServerSource {
  /** The URL of the server to connect to now. */
  readonly url: string
  /** Run on a new connection before its first use. Throws if the server must not be used. */
  check(connection: Connection): void
  /** Must be called after an error that may be due to a failover: starts a search for the server to use. */
  startSearch(): void
  /** Calls `listener` when `url` has changed. It must close connections to the former server at once. */
  onSwitch(listener: () => void): void
}

export const ignore = (): void => undefined

/**
 * The share of connections that reads by key may share by pipelining. Those hold them without a pause under load, so the rest is for
 * everything else.
 */
const SHARED = 0.5

/** Missing in pg's types: statements are sent without waiting for the responses to earlier ones. */
interface PipelinedOptions extends ConnectionOptions {
  readonly pipeline: boolean
}

/** A connection that several reads use at once. */
interface SharedConnection {
  readonly client: Promise<pg.PoolClient>
  reads: number
  isBroken: boolean
}

/** A transaction after its COMMIT. */
interface Committed<Result> {
  readonly result: Result
  /** `null` if nothing waits for the other processes. */
  readonly pending: PendingWrite | null
  readonly leases: readonly LeaseRow[]
}

const unavailable = (cause: unknown): ServiceError => new ServiceError('storeUnavailable', { cause })

/** The error of a call. The text of the database may quote data, so it is only logged. */
const translate = (error: unknown): ServiceError | OperationError => {
  if (error instanceof ServiceError || error instanceof OperationError) return error
  if (error instanceof pg.DatabaseError && !isOutage(error))
    return new ServiceError('internalError', { cause: error })
  return unavailable(error)
}

const runOn =
  (client: pg.ClientBase): Run =>
  async <Row extends object>({ values, ...statement }: Statement): Promise<readonly Row[]> => {
    const result = await client.query<Row>({ ...statement, values: [...values] })
    // Each client of the pool is one.
    const connection = client as Connection
    connection.assertReplicated()
    // The result of several statements is a list.
    return (Array.isArray(result) ? result.at(-1) : result).rows
  }

export interface DatabaseOptions {
  /** Called with the id of each user and admin key whose cached state a write made stale, before it is acknowledged. */
  readonly invalidate: (id: string) => void
  /** Whether caches may be used now. If not, the server must prove after a read that it is the primary. */
  readonly hasLease: () => boolean
  /** Whether writes that end access wait for the other processes. */
  readonly waits: boolean
  /** Called with the id of each process whose lease ended before it confirmed a write. */
  readonly onLapse: (id: string) => void
}

export class Database implements Reader {
  readonly #servers: ServerSource
  readonly #pool: pg.Pool
  /** The sockets of every connection, so that those to a former primary, which may be silent, can be closed without its response. */
  readonly #sockets = new Set<Socket>()
  readonly #running = new Set<Promise<unknown>>()
  readonly #maxShared: number
  /** In use by one read or more. */
  readonly #shared = new Set<SharedConnection>()
  #sharedReads = 0
  readonly #options: DatabaseOptions
  /** The processes that use this database. */
  readonly leases: ProcessLeases
  #isClosed = false

  /**
   * @param servers chooses the server.
   * @param connections the maximum number of connections.
   */
  constructor(servers: ServerSource, connections: number, options: DatabaseOptions) {
    this.#servers = servers
    this.#options = options
    this.leases = new ProcessLeases(statement => this.read(statement), options.onLapse)
    this.#maxShared = Math.floor(connections * SHARED)
    const stream = (): Socket => this.#newSocket()
    // The pool constructs each connection with the current URL: so one pool is enough when the server changes.
    class Client extends Connection {
      constructor() {
        const options: PipelinedOptions = { ...connectionOptions(servers.url), stream, pipeline: true }
        super(options)
      }
    }
    this.#pool = new pg.Pool({
      connectionTimeoutMillis: CONNECT_TIMEOUT,
      max: connections,
      idleTimeoutMillis: IDLE_TIMEOUT,
      Client,
      onConnect: client => servers.check(client as Connection),
    })
    // Of connections that nobody uses: the pool removes them.
    this.#pool.on('error', ignore)
    servers.onSwitch(() => {
      for (const socket of this.#sockets) socket.destroy()
    })
  }

  get statistics(): PoolStatistics {
    const { totalCount, idleCount, waitingCount } = this.#pool
    return { inUse: totalCount - idleCount, waiting: waitingCount }
  }

  /**
   * Runs one statement that reads.
   * @param onStart called when it has a connection.
   * @throws {ServiceError} `storeUnavailable`, `overloaded`
   */
  read<Row extends object>(statement: Statement): Promise<readonly Row[]> {
    return this.#run(run => run<Row>(statement), isStatementError)
  }

  /**
   * Runs one statement that reads what decides about access.
   * @throws {ServiceError} `storeUnavailable`, also if the server is a former primary; `overloaded`
   */
  readCurrent<Row extends object>(statement: Statement): Promise<readonly Row[]> {
    return this.#run(run => this.#proved<Row>(run, statement), isStatementError)
  }

  /**
   * Runs one short statement that reads by a key. Such reads share connections: a read is sent before the responses to earlier ones
   * have arrived, so that they wait for the network together. An error of one statement does not affect the others; they fail with
   * their connection, also if one of them has no response in time.
   * @param onStart called when it has a connection, before it is sent.
   * @throws {ServiceError} `storeUnavailable`, `overloaded`
   */
  readByKey<Row extends object>(statement: Statement, onStart?: () => void): Promise<readonly Row[]> {
    const work = (run: Run): Promise<readonly Row[]> => {
      onStart?.()
      return this.#proved(run, statement)
    }
    if (this.#maxShared === 0) return this.#run(work, isStatementError)
    if (this.#sharedReads >= MAX_WAITING) return Promise.reject(new ServiceError('overloaded'))
    return this.#guard(() => this.#runOnShared(work, isStatementError))
  }

  /**
   * Runs one statement that reads, on a connection that passes a check directly before.
   * @param check throws if the server of the connection must not be used. The connection is then closed.
   * @throws {ServiceError} `storeUnavailable`, also if the check fails; `overloaded`
   */
  readAfter<Row extends object>(
    check: (run: Run) => Promise<void>,
    statement: Statement,
  ): Promise<readonly Row[]> {
    const work = async (run: Run): Promise<readonly Row[]> => {
      await check(run)
      return run<Row>(statement)
    }
    return this.#run(work, isStatementError)
  }

  /**
   * Runs one statement that writes what no cache holds: new and imported users, new sessions, hashes, last requests, events
   * without a change, counts of rate limits, removals of expired rows. PostgreSQL commits it implicitly. Everything else is
   * written in a {@link transaction}.
   * @throws {ServiceError} `storeUnavailable`, also if it is unknown whether the write was committed; `overloaded`
   */
  writeUncached<Row extends object>(statement: Statement): Promise<readonly Row[]> {
    return this.read<Row>(statement)
  }

  /**
   * Runs several statements as one transaction; each sees what was committed before it. What `work` invalidates is
   * notified to the other processes in the transaction, and evicted here before the promise settles. This includes failures, as
   * only the response to COMMIT may be lost. A write that ends access then waits for the other processes, without a connection.
   * @param work is called again, on the same connection, after the server has rolled its transaction back because of a concurrent
   * one: {@link MAX_ATTEMPTS} times at most.
   * @throws {ServiceError} `storeUnavailable`, also if it is unknown whether the transaction was committed; `overloaded`
   */
  async transaction<Result>(work: (run: Run) => Promise<Write<Result>>): Promise<Result> {
    let stale: readonly string[] = []
    const attempt = async (run: Run): Promise<Committed<Result>> => {
      await run(BEGIN)
      const write = await work(run).catch(async error => {
        // The connection is usable after a mistake in an operation, which clients may cause often.
        if (error instanceof OperationError) await run({ text: 'ROLLBACK', values: [] })
        throw error
      })
      stale = write.evicts ?? []
      const pending = write.endsAccess && this.#options.waits ? this.leases.begin() : null
      // One message, so that the notification costs no round trip.
      const notifications = write.notifies ? stale.map(id => `${notifyText(id)}; `) : []
      const commit = isRefused(write) ? 'ROLLBACK' : `${notifications.join('')}${pending?.commit ?? 'COMMIT'}`
      try {
        return { result: write.result, pending, leases: await run<LeaseRow>({ text: commit, values: [] }) }
      } catch (error) {
        pending?.end()
        throw error
      }
    }
    const transaction = async (run: Run): Promise<Committed<Result>> => {
      for (let attempts = 1; ; attempts += 1) {
        try {
          return await attempt(run)
        } catch (error) {
          if (!isConflict(error) || attempts === MAX_ATTEMPTS) throw error
          await run({ text: 'ROLLBACK', values: [] })
        }
      }
    }
    // A transaction that failed otherwise may still be open on its connection.
    const committed = await this.#run(transaction, error => error instanceof OperationError).finally(() => {
      for (const id of stale) this.#options.invalidate(id)
    })
    await committed.pending?.confirmed(committed.leases)
    return committed.result
  }

  /** Waits for running calls, then closes every connection. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await Promise.all(this.#running)
    await this.#pool.end()
  }

  /** @param isReusable whether the connection is usable after an error. */
  #run<Result>(
    work: (run: Run) => Promise<Result>,
    isReusable: (error: unknown) => boolean,
  ): Promise<Result> {
    return this.#guard(() => this.#runOnClient(work, isReusable))
  }

  /** Bounds the calls that wait, translates errors, and keeps the store open until the call has ended. */
  #guard<Result>(call: () => Promise<Result>): Promise<Result> {
    if (this.#isClosed) return Promise.reject(unavailable(new Error('The store is closed')))
    if (this.#pool.waitingCount >= MAX_WAITING) return Promise.reject(new ServiceError('overloaded'))
    const result = call().catch(error => {
      if (mayBeFailover(error)) this.#servers.startSearch()
      throw translate(error)
    })
    const settled = result.then(ignore, ignore)
    this.#running.add(settled)
    void settled.then(() => this.#running.delete(settled))
    return result
  }

  /** Without a lease, the server may have become a former primary before the statement: see `process-leases.ts`. */
  async #proved<Row extends object>(run: Run, statement: Statement): Promise<readonly Row[]> {
    const rows = await run<Row>(statement)
    if (!this.#options.hasLease()) await run(PROOF_OF_PRIMARY)
    return rows
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
      // Another server has replaced the one that refused: no statement was sent yet, so retrying is safe.
      if (this.#servers.url !== url) return this.#pool.connect()
      throw error
    }
  }

  async #runOnClient<Result>(
    work: (run: Run) => Promise<Result>,
    isReusable: (error: unknown) => boolean,
  ): Promise<Result> {
    const client = await this.#connect()
    let reusable = true
    try {
      return await work(runOn(client))
    } catch (error) {
      reusable = isReusable(error) && !mayBeFailover(error)
      throw error
    } finally {
      client.release(!reusable)
    }
  }

  /** A new connection while there may be more, else the one with the fewest reads. */
  #shareConnection(): SharedConnection {
    if (this.#shared.size >= this.#maxShared) {
      return [...this.#shared].reduce((least, next) => (next.reads < least.reads ? next : least))
    }
    const connection = { client: this.#connect(), reads: 0, isBroken: false }
    this.#shared.add(connection)
    return connection
  }

  async #runOnShared<Result>(
    work: (run: Run) => Promise<Result>,
    isReusable: (error: unknown) => boolean,
  ): Promise<Result> {
    const connection = this.#shareConnection()
    connection.reads += 1
    this.#sharedReads += 1
    try {
      return await work(runOn(await connection.client))
    } catch (error) {
      if (!isReusable(error) || mayBeFailover(error)) {
        connection.isBroken = true
        this.#shared.delete(connection)
      }
      throw error
    } finally {
      connection.reads -= 1
      this.#sharedReads -= 1
      if (connection.reads === 0) {
        this.#shared.delete(connection)
        await connection.client.then(client => client.release(connection.isBroken), ignore)
      }
    }
  }
}
