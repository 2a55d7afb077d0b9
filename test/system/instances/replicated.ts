/** Two PostgreSQL servers, a primary and its standby, that change roles. */
import {
  type PostgresServer,
  REPLICATION,
  startPostgres,
  startStandby,
} from '../../../scripts/postgres-server.ts'
import type { Context } from '../../support/build.ts'
import { query } from '../../support/postgres.ts'
import { until } from '../../support/until.ts'

/** Milliseconds until a standby has caught up. */
const CATCH_UP = 60_000

/** How the primary is lost: its processes are killed, or stopped with their connections open, as in a power failure. */
export type Loss = 'killed' | 'silent'

/** Whether the standby confirms every commit. */
export type Replication = 'synchronous' | 'asynchronous'

export class Replicated {
  /** The service's `DATABASE_URL`: both servers in a fixed order. */
  readonly url: string
  #primary: PostgresServer
  #standby: PostgresServer
  readonly #replication: Replication

  private constructor(primary: PostgresServer, standby: PostgresServer, replication: Replication) {
    this.#replication = replication
    this.#primary = primary
    this.#standby = standby
    const { host } = new URL(primary.url)
    this.url = primary.url.replace(host, `${host},${new URL(standby.url).host}`)
  }

  static async start(context: Context, replication: Replication = 'synchronous'): Promise<Replicated> {
    const options = { settings: REPLICATION }
    const primary = await startPostgres(options)
    context.teardown(() => primary.stop())
    const standby = await startStandby(primary, options)
    context.teardown(() => standby.stop())
    const servers = new Replicated(primary, standby, replication)
    await servers.#joined()
    return servers
  }

  /** The URL of the writable server. */
  get primaryUrl(): string {
    return this.#primary.url
  }

  /** Stops the primary and promotes its standby. @returns when that one accepted writes (`performance.now()`). */
  async failOver(loss: Loss): Promise<number> {
    if (loss === 'killed') await this.#primary.kill()
    else this.#primary.freeze()
    await query(this.#standby.url, 'SELECT pg_promote()')
    const promotedAt = performance.now()
    ;[this.#primary, this.#standby] = [this.#standby, this.#primary]
    return promotedAt
  }

  /** Makes the former primary a standby, from a copy of the current one. */
  async rebuild(): Promise<void> {
    await this.#standby.kill()
    await this.#standby.follow(this.#primary)
    await this.#joined()
  }

  /** Waits until the standby has all earlier commits. */
  async caughtUp(): Promise<void> {
    const state = this.#replication === 'synchronous' ? 'sync' : 'async'
    const text = `SELECT 1 FROM pg_stat_replication
      WHERE sync_state = '${state}' AND flush_lsn >= pg_current_wal_flush_lsn()`
    if (!(await until(async () => (await query(this.primaryUrl, text)).length > 0, Boolean, CATCH_UP)))
      throw new Error('the standby does not catch up')
  }

  /**
   * From now on the standby confirms every commit, if replication is synchronous. On a promoted server the setting is off until then,
   * as cluster managers do: otherwise no write would be acknowledged without a standby.
   */
  async #joined(): Promise<void> {
    if (this.#replication === 'synchronous') {
      await query(this.primaryUrl, `ALTER SYSTEM SET synchronous_standby_names = '*'`)
      await query(this.primaryUrl, 'SELECT pg_reload_conf()')
    }
    await this.caughtUp()
  }
}
