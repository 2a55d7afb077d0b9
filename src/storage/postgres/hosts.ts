/**
 * Which of several servers is connected to: the one that takes writes, and the same one for every connection of a process.
 *
 * Whoever meets trouble says so ({@link Hosts.suspect}). All servers are asked then, at once and again and again, until
 * one takes writes; the answer may be the same one as before. Where it is another one, everybody is told and closes their
 * connections to the former one in the same turn of the event loop: what is remembered is never kept current by one
 * server while another one takes the writes.
 *
 * A server that was promoted has a higher timeline than the one that it replaced, so of two that take writes the later
 * primary is chosen, and a process that has met it never goes back to the former one.
 */
import { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { parseServers, type Server } from './connection-url.ts'
import { connectionOptions, isAnswer, reason, type ServerSource } from './database.ts'

/** Milliseconds that a server may take to connect and to say what it is: one without power never answers. */
const PROBE_TIMEOUT = 1_500

/** Milliseconds from the end of one search to the beginning of the next. */
const SEARCH_INTERVAL = 250

/** Also `on` by default on a standby. */
const READ_ONLY = {
  text: `SELECT current_setting('transaction_read_only') AS read_only`,
  query_timeout: PROBE_TIMEOUT,
}

const TIMELINE = 'SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS timeline'

interface Found {
  readonly server: Server
  readonly timeline: number
}

const ignore = (): void => undefined

const assertWritable = async (client: pg.ClientBase): Promise<void> => {
  const { rows } = await client.query<{ read_only: string }>({ ...READ_ONLY })
  if (rows[0]?.read_only !== 'off') throw new Error('it takes no writes')
}

/** 0 where the server does not tell its timeline to this role. */
const timelineOf = async (client: pg.ClientBase): Promise<number> => {
  try {
    const { rows } = await client.query<{ timeline: string }>(TIMELINE)
    return Number.parseInt(rows[0]?.timeline ?? '', 16) || 0
  } catch (error) {
    if (isAnswer(error)) return 0
    throw error
  }
}

export class Hosts implements ServerSource {
  /** What every new connection asks before it is used; `null` where any server will do, which costs nothing. */
  readonly check: ((client: pg.ClientBase) => Promise<void>) | null
  readonly #servers: readonly Server[]
  #current: Server
  /** The highest that was met. */
  #timeline = 0
  #searching = false
  #closed = false
  readonly #listeners: (() => void)[] = []

  private constructor(url: string) {
    const { servers, readWrite } = parseServers(url)
    this.#servers = servers
    this.#current = servers[0]
    this.check = readWrite ? assertWritable : null
  }

  /**
   * The servers of a URL, of which the one to use is known. A URL that names one server, and does not ask for one that
   * takes writes, is not looked at any further.
   * @throws {Error} what each of them said, when none will do.
   */
  static async open(url: string): Promise<Hosts> {
    const hosts = new Hosts(url)
    if (hosts.#isChoice()) await hosts.#search()
    return hosts
  }

  /** The URL of the server to use at this timestamp. */
  get url(): string {
    return this.#current.url
  }

  /** Calls `listener` when another server is to be used from now on. */
  onSwitch(listener: () => void): void {
    this.#listeners.push(listener)
  }

  /** Something is wrong with the present server: looks whether another one has taken its place, until one takes writes. */
  suspect(): void {
    if (this.#searching || this.#closed || this.#servers.length === 1) return
    this.#searching = true
    void this.#searchUntilFound()
  }

  close(): void {
    this.#closed = true
  }

  #isChoice(): boolean {
    return this.#servers.length > 1 || this.check !== null
  }

  async #searchUntilFound(): Promise<void> {
    for (let found = false; !found && !this.#closed; ) {
      found = await this.#search().then(
        () => true,
        () => false,
      )
      // Also after a success: trouble that has another reason must not become a storm of connections.
      await sleep(SEARCH_INTERVAL, undefined, { ref: false })
    }
    this.#searching = false
  }

  async #search(): Promise<void> {
    // The present one first: of equals the first is taken.
    const servers = [this.#current, ...this.#servers.filter(server => server !== this.#current)]
    const results = await Promise.allSettled(servers.map(server => this.#probe(server)))
    const found = results.flatMap(result => (result.status === 'fulfilled' ? result.value : []))
    const best = found.reduce<Found | null>(
      (best, next) => (best === null || next.timeline > best.timeline ? next : best),
      null,
    )
    if (best === null) {
      const reasons = results.map((result, index) =>
        result.status === 'rejected' ? `${servers[index]?.name}: ${reason(result.reason)}` : '',
      )
      throw new Error(`no server can be used: ${reasons.join('; ')}`)
    }
    if (this.#closed) return
    this.#timeline = best.timeline
    if (best.server === this.#current) return
    this.#current = best.server
    for (const listener of this.#listeners) listener()
  }

  /** @throws {Error} when it cannot be used. */
  async #probe(server: Server): Promise<Found> {
    const socket = new Socket()
    const client = new pg.Client({ ...connectionOptions(server.url), stream: () => socket })
    client.on('error', ignore)
    const timer = setTimeout(
      () => socket.destroy(new Error(`no answer within ${PROBE_TIMEOUT} ms`)),
      PROBE_TIMEOUT,
    )
    try {
      await client.connect()
      if (this.check === null) return { server, timeline: 0 }
      await this.check(client)
      const timeline = await timelineOf(client)
      if (timeline < this.#timeline) throw new Error('it was the primary before another one was promoted')
      return { server, timeline }
    } finally {
      client.once('end', () => clearTimeout(timer))
      void client.end().catch(ignore)
      if (socket.destroyed) clearTimeout(timer)
    }
  }
}
