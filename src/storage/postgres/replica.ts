/**
 * Lists, exports and event pages from a streaming replica (`DATABASE_READ_URL`), if what it has is known to be recent enough; else
 * from the primary (docs/design.md, "Storage").
 *
 * Each heartbeat of the invalidation feed reads how far the primary's log is on disk. Every write that was acknowledged before the
 * heartbeat was sent is before that position. A replica that has replayed it therefore has all of them: its data is at most as old
 * as that heartbeat. Clocks of different machines are not compared, and a primary without writes makes no replica look older.
 *
 * Each read checks the server of its own connection, as an address may lead to several servers. The watcher, with a connection of
 * its own, keeps reads away from a server that would fail the check, and closes their connections when it does not respond.
 */

import { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { BoundedQueue } from '#base/concurrency/bounded-queue'
import { ServiceError } from '#base/errors'
import type { ReplicaStatistics } from '../statistics.ts'
import { Connection, connectionOptions } from './connection.ts'
import { parseServers, type Server } from './connection-url.ts'
import { Database, ignore, type Reader, type Run, reason, type Statement } from './database.ts'
import { HEARTBEAT_INTERVAL } from './heartbeats.ts'
import { objectionTo, type PrimaryIdentity, type ReplicaState, SELECT_REPLICA } from './replica-state.ts'

/** The replica of PostgreSQL that lists are read from. */
export interface ReplicaOptions {
  /** May name several servers, which are tried in turn. */
  readonly url: string
  /** Milliseconds by which a read may be behind acknowledged writes. */
  readonly maxLag: number
  readonly log: Readonly<Record<'error' | 'warn' | 'info', (message: string) => void>>
}

/** Milliseconds between two looks at the replica, and until one without a response fails. */
const WATCH_INTERVAL = 100
const WATCH_TIMEOUT = 1_500

const WATCH = { ...SELECT_REPLICA, query_timeout: WATCH_TIMEOUT }

/** Milliseconds between two messages about a replica that cannot be used: it may come and go. */
const MESSAGE_INTERVAL = 60_000

/** Positions of the primary that are kept: ten minutes. A replica further behind is not used anyway; only its lag is then too high. */
const MAX_POSITIONS = 600_000 / HEARTBEAT_INTERVAL

/** How many reads may wait, and for how many milliseconds. */
const MAX_WAITING = 200
const WAIT_LIMIT = 5_000

/** `query_canceled`: the statement took too long, and would on the primary too. */
const QUERY_CANCELED = '57014'

/** A server that must not be used: another database, a promoted one. */
class Refusal extends Error {}

interface Watcher {
  readonly client: Connection
  readonly socket: Socket
}

/** What the primary had on disk when a heartbeat was sent, in milliseconds of `performance.now()`. */
interface PrimaryPosition {
  readonly flushed: number
  readonly sentAt: number
}

const isFinal = (error: unknown): boolean => {
  if (!(error instanceof ServiceError)) return false
  const { cause } = error
  return cause === undefined || (cause instanceof pg.DatabaseError && cause.code === QUERY_CANCELED)
}

export class Replica implements Reader {
  readonly #servers: readonly Server[]
  readonly #maxLag: number
  readonly #log: ReplicaOptions['log']
  readonly #database: Database
  readonly #queue: BoundedQueue
  readonly #listeners: (() => void)[] = []
  #current: Server
  #watcher: Watcher | null = null
  #isClosed = false
  #primary: PrimaryIdentity | null = null
  /** Oldest first. */
  #positions: PrimaryPosition[] = []
  /** The replica has every write that was acknowledged before; `null`: not known. */
  #freshAsOf: number | null = null
  /** Since when the current server is compared with the current primary. */
  #comparedSince = performance.now()
  /** Why it is not used; `null` if it is. */
  #problem: string | null = 'no heartbeat of the primary has arrived'
  #messageAt = Number.NEGATIVE_INFINITY
  #hasWarned = false
  readonly #reads = { replica: 0, primary: 0 }

  /** @param connections the maximum number for reads; the watcher has one more. */
  constructor({ url, maxLag, log }: ReplicaOptions, connections: number) {
    const { servers } = parseServers(url)
    this.#servers = servers
    this.#current = servers[0]
    this.#maxLag = maxLag
    this.#log = log
    this.#queue = new BoundedQueue(connections, MAX_WAITING, WAIT_LIMIT)
    const current = (): Server => this.#current
    const source = {
      get url() {
        return current().url
      },
      check: ignore,
      startSearch: ignore,
      onSwitch: (listener: () => void) => void this.#listeners.push(listener),
    }
    this.#database = new Database(source, connections, {
      invalidate: ignore,
      hasLease: () => true,
      waits: false,
      onLapse: ignore,
    })
    void this.#watch()
  }

  get statistics(): ReplicaStatistics {
    const lag = this.#lag
    return {
      isInUse: this.#isInUse,
      lag: lag === null ? null : lag / 1_000,
      problem: this.#problem,
      reads: { ...this.#reads },
    }
  }

  /** The primary that positions are of, from now on. `null`: its connection was lost, or `problem`. */
  setPrimary(primary: PrimaryIdentity | null, problem = 'heartbeats of the primary do not arrive'): void {
    this.#primary = primary
    this.#positions = []
    this.#freshAsOf = null
    this.#comparedSince = performance.now()
    if (primary === null) this.#problem = problem
  }

  /** Notes the position of the primary's log, read by a heartbeat that was sent at this time of `performance.now()`. */
  recordPosition(flushed: number, sentAt: number): void {
    this.#positions.push({ flushed, sentAt })
    if (this.#positions.length > MAX_POSITIONS) this.#positions.shift()
  }

  /**
   * Runs `read` on the replica, or `onPrimary` if the replica cannot be used or fails.
   * @throws {ServiceError} as `onPrimary`; `overloaded` if too many reads wait for the replica; `storeUnavailable` if one took too long
   * there: it would on the primary too.
   */
  async run<Result>(
    read: (reader: Reader) => Promise<Result>,
    onPrimary: () => Promise<Result>,
  ): Promise<Result> {
    if (this.#isInUse) {
      try {
        const result = await this.#queue.run(() => read(this))
        this.#reads.replica += 1
        return result
      } catch (error) {
        if (isFinal(error)) throw error
      }
    }
    this.#reads.primary += 1
    return onPrimary()
  }

  /** Runs a statement on the replica, after a check of the same connection. @throws {ServiceError} also if the check fails. */
  read<Row extends object>(statement: Statement): Promise<readonly Row[]> {
    return this.#database.readAfter<Row>(run => this.#check(run), statement)
  }

  /** Waits for running reads, then closes every connection. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#closeWatcher()
    await this.#database.close()
  }

  /** Milliseconds; an upper bound. `null`: not known. */
  get #lag(): number | null {
    return this.#freshAsOf === null ? null : performance.now() - this.#freshAsOf
  }

  get #isInUse(): boolean {
    const lag = this.#lag
    return lag !== null && lag <= this.#maxLag
  }

  async #check(run: Run): Promise<void> {
    const [state] = await run<ReplicaState>(SELECT_REPLICA)
    const age = performance.now() - this.#freshnessOf(state as ReplicaState)
    if (age > this.#maxLag) throw new Error(this.#tooOld(age))
  }

  /**
   * @returns the time before which every acknowledged write is on the server; `-Infinity` if not known.
   * @throws {Refusal}
   */
  #freshnessOf(state: ReplicaState): number {
    if (this.#primary === null) return Number.NEGATIVE_INFINITY
    const objection = objectionTo(state, this.#primary)
    if (objection !== null) throw new Refusal(objection)
    const replayed = state.isStandby ? (state.replayed ?? 0) : Number.POSITIVE_INFINITY
    const newest = this.#positions.findLast(({ flushed }) => flushed <= replayed)
    return newest?.sentAt ?? Number.NEGATIVE_INFINITY
  }

  #tooOld(age: number): string {
    const text = Number.isFinite(age) ? `may be ${Math.round(age)} ms old` : 'is of unknown age'
    return `its data ${text}, DATABASE_READ_MAX_LAG is ${this.#maxLag} ms`
  }

  async #watch(): Promise<void> {
    while (!this.#isClosed) {
      if (this.#positions.length > 0) {
        await this.#look().catch(error => {
          if (!this.#isClosed) this.#lose(error)
        })
      }
      await sleep(WATCH_INTERVAL, undefined, { ref: false })
    }
  }

  /** @throws {Error} if the server cannot be used, except for its lag. */
  async #look(): Promise<void> {
    const { client } = await this.#connect()
    const { rows } = await client.query<ReplicaState>({ ...WATCH })
    const state = rows[0] as ReplicaState
    if (!client.isServedBy(state.pid)) throw new Refusal('the connection leads through a pooler')
    const freshAsOf = this.#freshnessOf(state)
    if (Number.isFinite(freshAsOf)) this.#freshAsOf = freshAsOf
    const age = performance.now() - (this.#freshAsOf ?? this.#comparedSince)
    if (age > this.#maxLag) {
      this.#setProblem(this.#tooOld(age), 'warn')
      if (this.#servers.length > 1) this.#useNext()
    } else if (this.#freshAsOf !== null) this.#setProblem(null, 'info')
  }

  async #connect(): Promise<Watcher> {
    if (this.#watcher !== null) return this.#watcher
    // Our own socket, so that a connection to a silent server can be closed without its response.
    const socket = new Socket()
    const client = new Connection({
      ...connectionOptions(this.#current.url),
      connectionTimeoutMillis: WATCH_TIMEOUT,
      stream: () => socket,
    })
    this.#watcher = { client, socket }
    await client.connect()
    return this.#watcher ?? Promise.reject(new Error('the store is closed'))
  }

  #closeWatcher(): void {
    this.#watcher?.socket.destroy()
    this.#watcher = null
  }

  #lose(error: unknown): void {
    this.#setProblem(reason(error), error instanceof Refusal ? 'error' : 'warn')
    this.#useNext()
  }

  /** Closes every connection to the current server. With one server, the next is the same. */
  #useNext(): void {
    this.#closeWatcher()
    this.#freshAsOf = null
    this.#comparedSince = performance.now()
    const next = (this.#servers.indexOf(this.#current) + 1) % this.#servers.length
    this.#current = this.#servers[next] as Server
    for (const listener of this.#listeners) listener()
  }

  #setProblem(problem: string | null, level: 'error' | 'warn' | 'info'): void {
    this.#problem = problem
    const { name } = this.#current
    if (problem === null) {
      if (this.#hasWarned) this.#log.info(`lists are read from the replica ${name} again`)
      this.#hasWarned = false
      return
    }
    if (performance.now() - this.#messageAt < MESSAGE_INTERVAL) return
    this.#messageAt = performance.now()
    this.#hasWarned = true
    this.#log[level](`DATABASE_READ_URL: the primary serves lists, as ${name} is not used: ${problem}`)
  }
}
