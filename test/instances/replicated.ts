/** Two PostgreSQL servers, a primary and its synchronous standby, that change places. */
import {
  type PostgresServer,
  REPLICATION,
  startPostgres,
  startStandby,
} from '../../scripts/postgres-server.ts'
import type { Context } from '../support/build.ts'
import { query } from '../support/postgres.ts'
import { until } from '../support/until.ts'

/** Milliseconds until a standby has caught up. */
const CATCH_UP = 60_000

/** How the primary is lost: its processes are killed, or it falls silent with its connections open, as without power. */
export type Loss = 'killed' | 'silent'

/**
 * The standby confirms every commit from now on, and has all earlier ones. On one that was promoted the setting is off
 * until then, as a cluster manager keeps it: else no write would be acknowledged without a standby.
 */
const makeSynchronous = async ({ url }: PostgresServer): Promise<void> => {
  await query(url, `ALTER SYSTEM SET synchronous_standby_names = '*'`)
  await query(url, 'SELECT pg_reload_conf()')
  const text = `SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync' AND flush_lsn >= pg_current_wal_flush_lsn()`
  if (!(await until(async () => (await query(url, text)).length > 0, Boolean, CATCH_UP)))
    throw new Error('the standby does not catch up')
}

export class Replicated {
  /** The service's `DATABASE_URL`: both servers, in an order that stays. */
  readonly url: string
  #primary: PostgresServer
  #standby: PostgresServer

  private constructor(primary: PostgresServer, standby: PostgresServer) {
    this.#primary = primary
    this.#standby = standby
    const { host } = new URL(primary.url)
    this.url = primary.url.replace(host, `${host},${new URL(standby.url).host}`)
  }

  static async start(context: Context): Promise<Replicated> {
    const options = { settings: REPLICATION }
    const primary = await startPostgres(options)
    context.teardown(() => primary.stop())
    const standby = await startStandby(primary, options)
    context.teardown(() => standby.stop())
    await makeSynchronous(primary)
    return new Replicated(primary, standby)
  }

  /** The URL of the server that takes writes. */
  get primaryUrl(): string {
    return this.#primary.url
  }

  /** Loses the primary, after which its standby is promoted. @returns when that one took writes (`performance.now()`). */
  async failOver(loss: Loss): Promise<number> {
    if (loss === 'killed') await this.#primary.kill()
    else this.#primary.freeze()
    await query(this.#standby.url, 'SELECT pg_promote()')
    const promotedAt = performance.now()
    ;[this.#primary, this.#standby] = [this.#standby, this.#primary]
    return promotedAt
  }

  /** Makes the former primary a synchronous standby, on a copy of the present one's data. */
  async rebuild(): Promise<void> {
    await this.#standby.kill()
    await this.#standby.follow(this.#primary)
    await makeSynchronous(this.#primary)
  }
}
