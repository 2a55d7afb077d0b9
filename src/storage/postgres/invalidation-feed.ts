/**
 * Receives the changes of other instances from PostgreSQL (`LISTEN`/`NOTIFY`). The transaction of a change notifies: if it rolls
 * back, nothing is notified; if it commits, the notification is certain.
 *
 * A process that may miss notifications must not use its caches. It therefore renews a lease on the same connection every 300 ms
 * (`process-leases.ts`). While responses arrive in time, every change that was committed before the last renewal has arrived too. While
 * they are late, for example under overload, the caches are bypassed. Once the connection is lost, they are emptied. Through a pooler the
 * feed never listens.
 *
 * The feed listens to the server that takes the writes. When another server does, the connection counts as lost, and nothing is
 * cached until there is a new one.
 */
import { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { InvalidationListener } from '../invalidation.ts'
import type { FeedStatistics } from '../statistics.ts'
import { Connection, connectionOptions } from './connection.ts'
import { CHANNEL, ignore, isStatementError, reason, type ServerSource } from './database.ts'
import { type HeartbeatStatus, Heartbeats } from './heartbeats.ts'
import { CONFIRMATION_CHANNEL, LEASE, type ProcessLeases, type Renewal } from './process-leases.ts'
import type { Replica } from './replica.ts'
import { FLUSHED, readPrimaryIdentity } from './replica-state.ts'

/** Milliseconds until the feed reconnects, and until an attempt to connect fails. */
const RETRY_DELAY = 250
const CONNECT_TIMEOUT = 2_000

/** Milliseconds for the removal of the lease when the process ends. */
const REMOVAL_LIMIT = 250

/** Whether the server process still listens: behind a pooler another one may respond. */
const IS_LISTENING = `'${CHANNEL}' IN (SELECT pg_listening_channels()) AS "isListening"`

interface HeartbeatRow extends Renewal {
  readonly isListening: boolean
  /** Bytes; only with the position. */
  readonly flushed?: number
}

interface Listening {
  readonly client: Connection
  readonly socket: Socket
  heartbeats: Heartbeats | null
  /** Whether heartbeats also read the position of the log, for the replica. */
  readsPosition: boolean
  /** Tokens that have arrived since the last confirmation was sent. */
  unconfirmed: number
}

export class InvalidationFeed {
  readonly #servers: ServerSource
  readonly #leases: ProcessLeases
  readonly #replica: Pick<Replica, 'setPrimary' | 'recordPosition'> | null
  #listener: InvalidationListener | null = null
  #connection: Listening | null = null
  #isConnected = false
  #isLate = false
  #interruptions = 0
  #retry: NodeJS.Timeout | null = null

  /** @param replica is told which server is the primary, and how far its log was at each heartbeat. */
  constructor(
    servers: ServerSource,
    leases: ProcessLeases,
    replica: Pick<Replica, 'setPrimary' | 'recordPosition'> | null = null,
  ) {
    this.#servers = servers
    this.#leases = leases
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

  /** Whether caches may be used now, by the monotonic clock. */
  get hasLease(): boolean {
    const heartbeats = this.#connection?.heartbeats ?? null
    return this.#isConnected && heartbeats !== null && heartbeats.age < LEASE
  }

  /** Bypasses the caches if the lease has ended: no timer may have told it yet. Must be called before each use of a cache. */
  checkLease(): void {
    if (this.#isConnected && !this.#isLate && !this.hasLease && this.#connection !== null)
      this.#setStatus(this.#connection, 'late')
  }

  /** Notifies `listener`, instead of any previous one. */
  subscribe(listener: InvalidationListener): void {
    this.#listener = listener
    if (this.#isConnected) listener.setFeedConnected(true)
    if (this.#isLate) listener.setFeedLate(true)
  }

  async close(): Promise<void> {
    if (this.#retry !== null) clearTimeout(this.#retry)
    this.#listener?.closed()
    const connection = this.#connection
    if (connection === null) return
    this.#connection = null
    connection.heartbeats?.stop()
    // Without it, the next revocation elsewhere waits until the lease has ended.
    const removed =
      connection.heartbeats === null ? Promise.resolve() : connection.client.query(this.#leases.removal)
    await Promise.race([removed.catch(ignore), sleep(REMOVAL_LIMIT)])
    this.#disconnect(connection)
  }

  #connect(): void {
    // Our own socket, so that a connection to a silent server can be closed without its response.
    const socket = new Socket()
    const client = new Connection({
      ...connectionOptions(this.#servers.url),
      connectionTimeoutMillis: CONNECT_TIMEOUT,
      stream: () => socket,
    })
    const connection: Listening = { client, socket, heartbeats: null, readsPosition: false, unconfirmed: 0 }
    this.#connection = connection
    const onLost = () => this.#onLost(connection)
    client.on('error', onLost).on('end', onLost)
    // Own changes too: a transaction whose COMMIT timed out here may still commit, and is notified then.
    client.on('notification', ({ channel, payload = '' }) => {
      if (connection !== this.#connection) return
      if (channel !== CONFIRMATION_CHANNEL) return this.#listener?.invalidate(payload)
      this.#leases.received(payload)
      if (!this.#leases.isOwn(payload)) this.#confirm(connection).catch(onLost)
    })
    this.#listen(connection).catch(onLost)
  }

  async #listen(connection: Listening): Promise<void> {
    await connection.client.connect()
    this.#servers.check(connection.client)
    // A pooler gives the server connection to other clients after LISTEN.
    if (connection.client.isPooled) throw new Error('the connection leads through a pooler')
    await connection.client.query(`LISTEN ${CHANNEL}; LISTEN ${CONFIRMATION_CHANNEL}`)
    await this.#identifyPrimary(connection)
    // The connection was lost meanwhile.
    if (connection !== this.#connection) return
    connection.heartbeats = new Heartbeats(
      () => this.#beat(connection),
      status => this.#setStatus(connection, status),
    )
  }

  /** A role that may not read it has no replica, but the feed. */
  async #identifyPrimary(connection: Listening): Promise<void> {
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

  /** One confirmation at a time, of all tokens that have arrived. */
  async #confirm(connection: Listening): Promise<void> {
    connection.unconfirmed += 1
    if (connection.unconfirmed > 1) return
    while (connection.unconfirmed > 0) {
      const { unconfirmed } = connection
      await connection.client.query(this.#leases.confirmation)
      connection.unconfirmed -= unconfirmed
    }
  }

  /** @throws {Error} of the connection, or if it does not listen any more. */
  async #beat(connection: Listening): Promise<void> {
    const sentAt = performance.now()
    const columns = connection.readsPosition ? `${IS_LISTENING}, ${FLUSHED}` : IS_LISTENING
    const { text, values } = this.#leases.renewal(columns)
    const { rows } = await connection.client.query<HeartbeatRow>(text, [...values])
    connection.client.assertReplicated()
    if (!rows[0]?.isListening) throw new Error('the connection does not listen')
    if (connection !== this.#connection) return
    const { flushed } = rows[0]
    this.#leases.renewed(rows[0])
    if (flushed !== undefined) this.#replica?.recordPosition(flushed, sentAt)
  }

  #setStatus(connection: Listening, status: HeartbeatStatus): void {
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

  #onLost(connection: Listening): void {
    if (connection !== this.#connection) return
    // A connection that was late before it is lost is one interruption.
    if (this.#isConnected && !this.#isLate) this.#interruptions += 1
    this.#disconnect(connection)
    this.#listener?.setFeedConnected(false)
    this.#servers.startSearch()
    this.#retry = setTimeout(() => this.#connect(), RETRY_DELAY)
  }

  #disconnect({ heartbeats, socket }: Listening): void {
    this.#connection = null
    this.#replica?.setPrimary(null)
    this.#leases.lost()
    heartbeats?.stop()
    socket.destroy()
    this.#isConnected = false
    this.#isLate = false
  }
}
