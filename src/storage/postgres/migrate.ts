import { Kysely, PostgresDialect } from 'kysely'
import { Migrator } from 'kysely/migration'
import pg from 'pg'
import { migrations } from '../migrations/list.ts'
import { connectionOptions, reason, survive } from './database.ts'
import { raisePositions } from './event-positions.ts'
import { Hosts } from './hosts.ts'
import { POSTGRES_DIALECT } from './schema-dialect.ts'

/** Milliseconds that a migration may take, another instance's included. */
const TIMEOUT = 600_000

/**
 * Brings the schema up to date, as one transaction under a lock of the database's: instances that start at once migrate one
 * after the other.
 * @param url of one server.
 * @throws {Error} what the connection or a migration failed with.
 */
export const migrate = async (url: string): Promise<void> => {
  const options = { ...connectionOptions(url), statement_timeout: TIMEOUT, query_timeout: TIMEOUT, max: 1 }
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool: survive(new pg.Pool(options)) }) })
  const provider = { getMigrations: async () => migrations(POSTGRES_DIALECT) }
  try {
    const { error } = await new Migrator({ db, provider }).migrateToLatest()
    if (error !== undefined) throw error
    await raisePositions(db)
  } finally {
    await db.destroy()
  }
}

/**
 * What a store that is opened begins with.
 * @param url may name several servers.
 * @returns the servers, of which the one to use was brought up to date.
 * @throws {Error} a sentence of what the connection or a migration failed with.
 */
export const bringUpToDate = async (url: string): Promise<Hosts> => {
  try {
    const hosts = await Hosts.open(url)
    await migrate(hosts.url)
    return hosts
  } catch (error) {
    const { code = 'DATABASE' } = error as { code?: unknown }
    throw Object.assign(new Error(`the database: ${reason(error)}`, { cause: error }), { code })
  }
}
