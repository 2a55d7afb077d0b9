/**
 * Chooses one of several servers: the one that takes writes, and the same one for every connection of a process.
 *
 * After an error that may be due to a failover, {@link PrimaryServer.startSearch} probes all servers until one takes writes. The
 * result may be the same server as before. If it is another one, every listener closes its connections to the former server in
 * the same turn of the event loop. A cache is therefore never kept valid by one server while another takes the writes.
 *
 * A promoted server has a higher timeline than its predecessor. Of two servers that take writes, the later primary is chosen, without
 * waiting for servers that do not respond. A process that has connected to it never returns to the former one.
 *
 * Connections to a former primary that nobody has stopped show no error. So {@link PrimaryServer.watch} also asks the other servers
 * whether one of them takes writes.
 */
import { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { Connection, connectionOptions } from './connection.ts'
import { parseServers, type Server } from './connection-url.ts'
import { ignore, isStatementError, reason, type ServerSource } from './database.ts'

/** Milliseconds for a probe, including the connection: a server without power never responds. */
const PROBE_TIMEOUT = 1_500

/** Milliseconds from the end of one search to the start of the next. */
const SEARCH_INTERVAL = 250

/** Milliseconds between two questions to each other server. */
const WATCH_INTERVAL = 500

/** Selects `read_only`: `on` or `off`. Also `on` by default on a standby. */
export const SELECT_READ_ONLY = `SELECT current_setting('transaction_read_only') AS read_only`

const READ_ONLY_PROBE = { text: SELECT_READ_ONLY, query_timeout: PROBE_TIMEOUT }

const TIMELINE = 'SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS timeline'

interface UsableServer {
  readonly server: Server
  readonly timeline: number
}

const isWritable = async (client: pg.ClientBase): Promise<boolean> => {
  const { rows } = await client.query<{ read_only: string }>({ ...READ_ONLY_PROBE })
  return rows[0]?.read_only === 'off'
}

/** 0 if this role may not read the timeline. */
const timelineOf = async (client: pg.ClientBase): Promise<number> => {
  try {
    const { rows } = await client.query<{ timeline: string }>(TIMELINE)
    return Number.parseInt(rows[0]?.timeline ?? '', 16) || 0
  } catch (error) {
    if (isStatementError(error)) return 0
    throw error
  }
}

/** The servers that can be used. @throws {Error} with the reason for each server, if there is none. */
const usableOf = async (
  probes: readonly Promise<UsableServer>[],
): Promise<readonly [UsableServer, ...UsableServer[]]> => {
  const results = await Promise.allSettled(probes)
  const [first, ...others] = results.flatMap(result => (result.status === 'fulfilled' ? result.value : []))
  if (first !== undefined) return [first, ...others]
  const reasons = results.flatMap(result => (result.status === 'rejected' ? reason(result.reason) : []))
  throw new Error(`no server can be used: ${reasons.join('; ')}`)
}

/** Asks one server whether it takes writes, repeatedly on one connection. */
class Watch {
  readonly #server: Server
  #connection: { readonly client: pg.Client; readonly socket: Socket } | null = null
  #isAsking = false

  constructor(server: Server) {
    this.#server = server
  }

  /** `false` also without a response, and while it is being asked. */
  async isWritable(): Promise<boolean> {
    if (this.#isAsking) return false
    this.#isAsking = true
    try {
      return await isWritable(this.#connection?.client ?? (await this.#connect()))
    } catch {
      this.close()
      return false
    } finally {
      this.#isAsking = false
    }
  }

  close(): void {
    this.#connection?.socket.destroy()
    this.#connection = null
  }

  #connect(): Promise<pg.Client> {
    const socket = new Socket()
    const client = new Connection({
      ...connectionOptions(this.#server.url),
      application_name: 'gatehouse watch',
      connectionTimeoutMillis: PROBE_TIMEOUT,
      stream: () => socket,
    })
    this.#connection = { client, socket }
    return client.connect().then(() => client)
  }
}

export class PrimaryServer implements ServerSource {
  readonly #mustWrite: boolean
  readonly #servers: readonly Server[]
  #current: Server
  /** The highest timeline found so far. */
  #timeline = 0
  #isSearching = false
  #isClosed = false
  #watchTimer: NodeJS.Timeout | undefined
  readonly #watches = new Map<Server, Watch>()
  readonly #listeners: (() => void)[] = []

  private constructor(url: string) {
    const { servers, readWrite } = parseServers(url)
    this.#servers = servers
    this.#current = servers[0]
    this.#mustWrite = readWrite
  }

  /**
   * Finds the server to use among those of a URL. A single server without `target_session_attrs=read-write` is not probed.
   * @throws {Error} with the reason for each server, if none can be used.
   */
  static async open(url: string): Promise<PrimaryServer> {
    const primary = new PrimaryServer(url)
    if (primary.#needsSearch()) await primary.#search()
    return primary
  }

  /** The URL of the server to use now. */
  get url(): string {
    return this.#current.url
  }

  check({ isReadOnly }: Connection): void {
    if (this.#mustWrite && isReadOnly) throw new Error('the server is read-only')
  }

  /** Calls `listener` when another server must be used from now on. */
  onSwitch(listener: () => void): void {
    this.#listeners.push(listener)
  }

  /** Starts probing the servers until one can be used, unless a search is running or there is only one server. */
  startSearch(): void {
    if (this.#isSearching || this.#isClosed || this.#servers.length === 1) return
    this.#isSearching = true
    void this.#searchUntilFound()
  }

  /** Starts to notice when another server takes writes while the current one shows no error. */
  watch(): void {
    if (this.#servers.length === 1 || !this.#mustWrite) return
    for (const server of this.#servers) this.#watches.set(server, new Watch(server))
    this.#watchTimer = setInterval(() => {
      for (const [server, watch] of this.#watches) {
        if (server === this.#current) watch.close()
        else void watch.isWritable().then(isWritable => isWritable && this.#onWritable(server))
      }
    }, WATCH_INTERVAL)
  }

  close(): void {
    this.#isClosed = true
    clearInterval(this.#watchTimer)
    for (const watch of this.#watches.values()) watch.close()
  }

  #needsSearch(): boolean {
    return this.#servers.length > 1 || this.#mustWrite
  }

  async #searchUntilFound(): Promise<void> {
    for (let found = false; !found && !this.#isClosed; ) {
      found = await this.#search().then(
        () => true,
        () => false,
      )
      // Also after a success: errors with another cause must not cause a storm of connections.
      await sleep(SEARCH_INTERVAL, undefined, { ref: false })
    }
    this.#isSearching = false
  }

  async #search(): Promise<void> {
    const found = await usableOf(this.#servers.map(server => this.#probeOrSwitch(server)))
    // Of equal timelines the server in use is kept.
    const first = found.find(({ server }) => server === this.#current) ?? found[0]
    this.#use(found.reduce((best, next) => (next.timeline > best.timeline ? next : best), first))
  }

  /** Uses a server at once if it was promoted after the one in use: others may be silent until their time is over. */
  async #probeOrSwitch(server: Server): Promise<UsableServer> {
    const found = await this.#probe(server)
    if (this.#timeline > 0 && found.timeline > this.#timeline) this.#use(found)
    return found
  }

  #use({ server, timeline }: UsableServer): void {
    // A search may end after another server was found.
    if (this.#isClosed || timeline < this.#timeline) return
    this.#timeline = timeline
    if (server === this.#current) return
    this.#current = server
    for (const listener of this.#listeners) listener()
  }

  /** Called when another server takes writes. A search that runs may have asked it before. */
  #onWritable(server: Server): void {
    if (this.#isSearching) void this.#probeOrSwitch(server).catch(ignore)
    else this.startSearch()
  }

  /** @throws {Error} with the server's name, if it cannot be used. */
  async #probe(server: Server): Promise<UsableServer> {
    const socket = new Socket()
    const client = new Connection({ ...connectionOptions(server.url), stream: () => socket })
    const timer = setTimeout(
      () => socket.destroy(new Error(`no response within ${PROBE_TIMEOUT} ms`)),
      PROBE_TIMEOUT,
    )
    try {
      await client.connect()
      if (!this.#mustWrite) return { server, timeline: 0 }
      this.check(client)
      const timeline = await timelineOf(client)
      if (timeline < this.#timeline)
        throw new Error('the server is a former primary: another server was promoted')
      return { server, timeline }
    } catch (error) {
      throw new Error(`${server.name}: ${reason(error)}`, { cause: error })
    } finally {
      client.once('end', () => clearTimeout(timer))
      void client.end().catch(ignore)
      if (socket.destroyed) clearTimeout(timer)
    }
  }
}
