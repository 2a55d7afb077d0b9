/**
 * Receives the changes of other instances from PostgreSQL (`LISTEN`/`NOTIFY`). The transaction of a change notifies: if it rolls
 * back, nothing is notified; if it commits, the notification is certain.
 *
 * An instance that may miss notifications must not use its cache. It therefore sends itself a notification every 300 ms. While
 * these arrive in time, every change that was committed before the last of them has arrived too. While they are late, for
 * example under overload, the cache is bypassed. Once the connection is lost, the cache is emptied. Through a pooler the feed
 * never listens.
 *
 * The feed listens to the server that takes the writes. When another server does, the connection counts as lost, and nothing is
 * cached until there is a new one.
 */
import { randomBytes } from 'node:crypto'
import { Socket } from 'node:net'
import pg from 'pg'
import type { InvalidationListener } from '../../auth/invalidation.ts'
import type { FeedStatistics } from '../statistics.ts'
import { CHANNEL, connectionOptions, isStatementError, reason, type ServerSource } from './database.ts'
import { type HeartbeatStatus, Heartbeats } from './heartbeats.ts'
import type { Replica } from './replica.ts'
import { readPrimaryIdentity, SELECT_FLUSHED } from './replica-state.ts'

/** Milliseconds until the feed reconnects, and until an attempt to connect fails. */
const RETRY_DELAY = 250
const CONNECT_TIMEOUT = 2_000

/** Missing in pg's types: the id of the server process, as the server sent it when it accepted the connection. */
interface Connected extends pg.Client {
  readonly processID: number | null
}

interface Connection {
  readonly client: pg.Client
  readonly socket: Socket
  heartbeats: Heartbeats | null
  /** Whether heartbeats also read the position of the log, for the replica. */
  readsPosition: boolean
}

export class InvalidationFeed {
  readonly #servers: ServerSource
  readonly #replica: Pick<Replica, 'setPrimary' | 'recordPosition'> | null
  /** This instance's own channel, for its heartbeats. */
  readonly #channel = `gatehouse_heartbeat_${randomBytes(8).toString('hex')}`
  #listener: InvalidationListener | null = null
  #connection: Connection | null = null
  #isConnected = false
  #isLate = false
  #interruptions = 0
  #retry: NodeJS.Timeout | null = null

  /** @param replica is told which server is the primary, and how far its log was at each heartbeat. */
  constructor(servers: ServerSource, replica: Pick<Replica, 'setPrimary' | 'recordPosition'> | null = null) {
    this.#servers = servers
    this.#replica = replica
    servers.onSwitch(() => {
      if (this.#connection !== null) this.#onLost(this.#connection)
    })
    this.#connect()
  }

  get statistics(): FeedStatistics {
    const age = this.#connection?.heartbeats?.age
    const lag = age === undefined || !this.#isConnected ? null : age / 1_000
    return { isConnected: this.#isConnected, lag, interruptions: this.#interruptions }
  }

  /** Notifies `listener`, in place of any previous one. */
  subscribe(listener: InvalidationListener): void {
    this.#listener = listener
    if (this.#isConnected) listener.setFeedConnected(true)
    if (this.#isLate) listener.setFeedLate(true)
  }

  close(): void {
    if (this.#retry !== null) clearTimeout(this.#retry)
    if (this.#connection !== null) this.#disconnect(this.#connection)
    this.#listener?.closed()
  }

  #connect(): void {
    // Our own socket, so that a connection to a silent server can be closed without its response.
    const socket = new Socket()
    const client = new pg.Client({
      ...connectionOptions(this.#servers.url),
      connectionTimeoutMillis: CONNECT_TIMEOUT,
      stream: () => socket,
    })
    const connection: Connection = { client, socket, heartbeats: null, readsPosition: false }
    this.#connection = connection
    const onLost = () => this.#onLost(connection)
    client.on('error', onLost).on('end', onLost)
    client.on('notification', ({ channel, payload }) => this.#receive(connection, channel, payload ?? ''))
    this.#listen(connection).catch(onLost)
  }

  async #listen(connection: Connection): Promise<void> {
    await connection.client.connect()
    await this.#servers.check?.(connection.client)
    const { rows } = await connection.client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    // A pooler gives the server connection to other clients after LISTEN, and heartbeats may arrive all the same.
    if (rows[0]?.pid !== (connection.client as Connected).processID)
      throw new Error('the connection leads through a pooler')
    await connection.client.query(`LISTEN ${CHANNEL}; LISTEN ${this.#channel}`)
    await this.#identifyPrimary(connection)
    // The connection was lost meanwhile.
    if (connection !== this.#connection) return
    connection.heartbeats = new Heartbeats(
      text => this.#beat(connection, text),
      status => this.#setStatus(connection, status),
    )
  }

  /** A role that may not read it has no replica, but the feed. */
  async #identifyPrimary(connection: Connection): Promise<void> {
    if (this.#replica === null) return
    try {
      const identity = await readPrimaryIdentity(connection.client)
      if (connection !== this.#connection) return
      this.#replica.setPrimary(identity)
      connection.readsPosition = true
    } catch (error) {
      if (!isStatementError(error)) throw error
      this.#replica.setPrimary(null, `the primary cannot be identified: ${reason(error)}`)
    }
  }

  async #beat(connection: Connection, text: string): Promise<void> {
    const notify = `NOTIFY ${this.#channel}, '${text}'`
    if (!connection.readsPosition) return void (await connection.client.query(notify))
    const sentAt = performance.now()
    // Of several statements in one message, pg returns a list of results.
    const results = await connection.client.query<{ flushed: number }>(`${notify}; ${SELECT_FLUSHED}`)
    const [, position] = results as unknown as readonly pg.QueryResult<{ flushed: number }>[]
    if (connection === this.#connection && position?.rows[0] !== undefined)
      this.#replica?.recordPosition(position.rows[0].flushed, sentAt)
  }

  #setStatus(connection: Connection, status: HeartbeatStatus): void {
    if (connection !== this.#connection) return
    if (status === 'lost') return this.#onLost(connection)
    this.#setLate(status === 'late')
    // A primary without power is silent, and would count as lost only after seconds.
    if (status === 'late') this.#servers.startSearch()
    if (status === 'late' || this.#isConnected) return
    this.#isConnected = true
    this.#listener?.setFeedConnected(true)
  }

  #setLate(isLate: boolean): void {
    if (!this.#isConnected || this.#isLate === isLate) return
    this.#isLate = isLate
    if (isLate) this.#interruptions += 1
    this.#listener?.setFeedLate(isLate)
  }

  #receive(connection: Connection, channel: string, payload: string): void {
    if (connection !== this.#connection) return
    if (channel === CHANNEL) {
      // Own changes too: a transaction whose COMMIT timed out here may still commit, and is notified then.
      this.#listener?.invalidate(payload)
      return
    }
    connection.heartbeats?.receive(payload)
  }

  #onLost(connection: Connection): void {
    if (connection !== this.#connection) return
    // A connection that was late before it is lost is one interruption.
    if (this.#isConnected && !this.#isLate) this.#interruptions += 1
    this.#disconnect(connection)
    this.#listener?.setFeedConnected(false)
    this.#servers.startSearch()
    this.#retry = setTimeout(() => this.#connect(), RETRY_DELAY)
  }

  #disconnect({ heartbeats, socket }: Connection): void {
    this.#connection = null
    this.#replica?.setPrimary(null)
    heartbeats?.stop()
    socket.destroy()
    this.#isConnected = false
    this.#isLate = false
  }
}
