/** A connection to PostgreSQL with the settings that statements rely on, whatever the server, the database or the role sets. */
import type { Socket } from 'node:net'
import pg from 'pg'

/** Milliseconds until an attempt to connect fails, until the server cancels a statement, until its response counts as lost. */
export const CONNECT_TIMEOUT = 5_000
const STATEMENT_TIMEOUT = 5_000
const RESPONSE_TIMEOUT = 6_000

/** Every `bigint` of the schema is a timestamp, a key or a count: exact as a number. */
const types = {
  getTypeParser: ((oid: number, format?: 'text') =>
    oid === pg.types.builtins.INT8
      ? Number
      : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
}

export interface Statement {
  /** Given for a constant text: the statement is then prepared under this name. */
  readonly name?: string
  readonly text: string
  readonly values: readonly unknown[]
}

export interface ConnectionOptions extends pg.ClientConfig {
  /** Milliseconds until the server cancels a statement. */
  readonly statementTimeout: number
}

/** The options of every connection. */
export const connectionOptions = (url: string): ConnectionOptions => ({
  connectionString: url,
  application_name: 'gatehouse',
  connectionTimeoutMillis: CONNECT_TIMEOUT,
  statementTimeout: STATEMENT_TIMEOUT,
  query_timeout: RESPONSE_TIMEOUT,
  enableChannelBinding: /[?&]channel_binding=prefer(?:&|$)/.test(url),
  keepAlive: true,
  types,
})

/** Milliseconds for migrations, including waiting for those of another instance. */
const MIGRATION_TIMEOUT = 600_000

/** The options of connections that change the schema. */
export const migrationOptions = (url: string): ConnectionOptions => ({
  ...connectionOptions(url),
  statementTimeout: MIGRATION_TIMEOUT,
  query_timeout: MIGRATION_TIMEOUT,
})

/**
 * The settings of a connection. Databases and roles can have others at any time (`ALTER DATABASE … SET`): arrays of imports have
 * nulls, single statements are not repeated after a serialization failure, and a 2xx means that a write is on disk
 * (docs/design.md, "Storage"). Servers of earlier versions do not know all of them.
 */
const settingsOf = (statementTimeout: number): Readonly<Record<string, string>> => ({
  client_encoding: 'UTF8',
  client_min_messages: 'warning',
  array_nulls: 'on',
  standard_conforming_strings: 'on',
  default_transaction_isolation: 'read committed',
  statement_timeout: String(statementTimeout),
  lock_timeout: '0',
  transaction_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  idle_session_timeout: '0',
})

/**
 * One message, so that it costs one round trip. Parameters of the connection would cost none, but PgBouncer refuses those it does
 * not know. The isolation level is stated because a standby refuses `serializable`.
 */
const setUp = (statementTimeout: number): string => {
  const settings = Object.entries(settingsOf(statementTimeout)).map(
    ([name, value]) => `('${name}', '${value}')`,
  )
  return `BEGIN ISOLATION LEVEL READ COMMITTED;
    SELECT pg_backend_pid() AS pid, current_setting('transaction_read_only') = 'on' AS "isReadOnly", (
      SELECT count(set_config(name, value, false)) FROM (
        VALUES ${settings.join(', ')},
          ('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'))
      ) AS settings (name, value) WHERE current_setting(name, true) IS NOT NULL
    ) AS settings;
    COMMIT`
}

interface Session {
  /** The id of the server process that responded. */
  readonly pid: number
  /** Whether transactions are read-only by default. Those of a standby are. */
  readonly isReadOnly: boolean
}

/** Missing in pg's types. */
interface Internals {
  readonly password: unknown
  /** The id of the server process, as the server sent it when it accepted the connection. */
  readonly processID: number | null
  readonly connection: { readonly stream: Socket }
}

const PASSWORD_MISSING = 'the server asks for a password: add it to the URL, or set PGPASSWORD'

/** `invalid_password`; the driver itself fails where a password is needed to respond to the server. */
const isRefusedPassword = (error: unknown): boolean =>
  error instanceof pg.DatabaseError
    ? error.code === '28P01'
    : error instanceof Error && /\bpassword must be\b/.test(error.message)

export class Connection extends pg.Client {
  readonly #setUp: string
  #session: Session = { pid: 0, isReadOnly: false }
  /** Whether the synchronous standby has every commit of this connection. */
  #isReplicated = true

  constructor({ statementTimeout, ...options }: ConnectionOptions) {
    super(options)
    // The statement that runs on a broken connection, or the next one, rejects. An error that nothing listens to would end the process.
    this.on('error', () => undefined)
    this.on('notice', ({ routine }) => {
      if (routine === 'SyncRepWaitForLSN') this.#isReplicated = false
    })
    this.#setUp = setUp(statementTimeout)
  }

  /** Whether transactions were read-only by default when it was opened. */
  get isReadOnly(): boolean {
    return this.#session.isReadOnly
  }

  /**
   * Must be called after each statement. An operator may cancel a commit's wait for the synchronous standby (`pg_cancel_backend`): the server
   * then reports success with a warning, although a failover would lose the commit.
   * @throws {Error} if that has happened: the outcome is unknown, and the connection must be closed.
   */
  assertReplicated(): void {
    if (!this.#isReplicated) throw new Error('a commit did not wait for the synchronous standby')
  }

  /** Whether the connection leads through a pooler: another process responds than the one that accepted it. */
  get isPooled(): boolean {
    return !this.isServedBy(this.#session.pid)
  }

  /** @param pid the id of the server process that has responded to a statement. */
  isServedBy(pid: number): boolean {
    return pid === this.#internals.processID
  }

  /** Connects and sets the session up. @throws {Error} also if that fails, after which the connection is closed. */
  override connect(): Promise<Connection>
  override connect(callback: (error: Error | null) => void): void
  override connect(callback?: (error: Error | null) => void): Promise<Connection> | undefined {
    const connected = this.#open()
    if (callback === undefined) return connected
    void connected.then(() => callback(null), callback)
    return undefined
  }

  get #internals(): Internals {
    return this as unknown as Internals
  }

  async #open(): Promise<this> {
    try {
      await super.connect()
    } catch (cause) {
      const { password } = this.#internals
      if (isRefusedPassword(cause) && !password) throw new Error(PASSWORD_MISSING, { cause })
      throw cause
    }
    try {
      // The result of several statements is a list.
      const results = (await this.query(this.#setUp)) as unknown as readonly pg.QueryResult<Session>[]
      this.#session = results.flatMap(({ rows }) => rows)[0] ?? this.#session
    } catch (error) {
      this.#internals.connection.stream.destroy()
      throw error
    }
    return this
  }
}
