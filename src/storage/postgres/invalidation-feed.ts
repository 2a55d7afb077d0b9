/**
 * What other instances change, as PostgreSQL tells it (`LISTEN`/`NOTIFY`): a change's own transaction notifies, so one
 * that rolls back notifies nobody, and one that commits cannot go untold.
 *
 * An instance that might not hear must not rely on what it remembers. So it sends itself a notification every 300 ms: while
 * these come back, every change that was committed before the last of them has come too. While they come late, as where
 * something is overloaded, what is remembered is left aside; once the connection is lost, nothing is remembered. Through a
 * pooler it never listens.
 *
 * It listens to the server that takes the writes. Once another one does, the connection is lost, and nothing is remembered
 * until it has been made anew.
 */
import { randomBytes } from 'node:crypto'
import { Socket } from 'node:net'
import pg from 'pg'
import type { InvalidationListener } from '../../auth/invalidation.ts'
import { connectionOptions, type ServerSource } from './database.ts'
import { type Hearing, Heartbeats } from './heartbeats.ts'
import { CHANNEL } from './notifications.ts'

/** Milliseconds until a lost connection is made anew, and until an attempt counts as failed. */
const RETRY_DELAY = 250
const CONNECT_TIMEOUT = 2_000

/** Hears nothing: what the service starts with. */
const NOBODY: InvalidationListener = {
  userChanged: () => undefined,
  anyoneChanged: () => undefined,
  listening: () => undefined,
  late: () => undefined,
}

/** What pg's types leave out: the server process that the connection was told it has. */
interface Connected extends pg.Client {
  readonly processID: number | null
}

interface Connection {
  readonly client: pg.Client
  readonly socket: Socket
  heartbeats: Heartbeats | null
}

export class InvalidationFeed {
  readonly #servers: ServerSource
  /** This instance's own channel, for its heartbeats. */
  readonly #channel = `gatehouse_heartbeat_${randomBytes(8).toString('hex')}`
  #listener = NOBODY
  #connection: Connection | null = null
  #listening = false
  #late = false
  #retry: NodeJS.Timeout | null = null
  #closed = false

  constructor(servers: ServerSource) {
    this.#servers = servers
    servers.onSwitch(() => {
      if (this.#connection !== null) this.#lose(this.#connection)
    })
    this.#connect()
  }

  /** Tells `listener` from now on. */
  subscribe(listener: InvalidationListener): void {
    this.#listener = listener
    if (this.#listening) listener.listening(true)
    if (this.#late) listener.late(true)
  }

  close(): void {
    this.#closed = true
    if (this.#retry !== null) clearTimeout(this.#retry)
    if (this.#connection !== null) this.#lose(this.#connection)
  }

  #connect(): void {
    // Our own socket, so that a connection whose other end is silent can be ended without asking it.
    const socket = new Socket()
    const client = new pg.Client({
      ...connectionOptions(this.#servers.url),
      connectionTimeoutMillis: CONNECT_TIMEOUT,
      stream: () => socket,
    })
    const connection: Connection = { client, socket, heartbeats: null }
    this.#connection = connection
    const lose = () => this.#lose(connection)
    client.on('error', lose).on('end', lose)
    client.on('notification', ({ channel, payload }) => this.#receive(connection, channel, payload ?? ''))
    this.#listen(connection).catch(lose)
  }

  async #listen(connection: Connection): Promise<void> {
    await connection.client.connect()
    await this.#servers.check?.(connection.client)
    const { rows } = await connection.client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    // Behind a pooler, LISTEN is another client's connection the next timestamp, and a heartbeat may come back all the same.
    if (rows[0]?.pid !== (connection.client as Connected).processID) throw new Error('a pooler is between')
    await connection.client.query(`LISTEN ${CHANNEL}; LISTEN ${this.#channel}`)
    // Lost as soon as it was made.
    if (connection !== this.#connection) return
    connection.heartbeats = new Heartbeats(
      text => connection.client.query(`NOTIFY ${this.#channel}, '${text}'`),
      hearing => this.#hear(connection, hearing),
    )
  }

  #hear(connection: Connection, hearing: Hearing): void {
    if (connection !== this.#connection) return
    if (hearing === 'lost') return this.#lose(connection)
    this.#setLate(hearing === 'late')
    // A primary without power is silent: that it is lost would be known in seconds.
    if (hearing === 'late') this.#servers.suspect()
    if (hearing === 'late' || this.#listening) return
    this.#listening = true
    this.#listener.listening(true)
  }

  #setLate(isLate: boolean): void {
    if (!this.#listening || this.#late === isLate) return
    this.#late = isLate
    this.#listener.late(isLate)
  }

  #receive(connection: Connection, channel: string, payload: string): void {
    if (connection !== this.#connection) return
    if (channel === CHANNEL) {
      // The own ones too: one whose COMMIT was given up here may still come true, and is told then.
      this.#listener.userChanged(payload)
      return
    }
    connection.heartbeats?.receive(payload)
  }

  #lose(connection: Connection): void {
    if (connection !== this.#connection) return
    this.#connection = null
    connection.heartbeats?.stop()
    connection.socket.destroy()
    this.#listening = false
    this.#late = false
    this.#listener.listening(false)
    if (this.#closed) return
    this.#servers.suspect()
    this.#retry = setTimeout(() => this.#connect(), RETRY_DELAY)
  }
}
