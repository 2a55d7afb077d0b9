import { Kysely, PostgresDialect, sql } from 'kysely'
import { Migrator } from 'kysely/migration'
import pg from 'pg'
import { migrations } from '../migrations/list.ts'
import type { SchemaDialect } from '../migrations/schema-dialect.ts'
import { connectionOptions, reason, survive } from './database.ts'
import { raisePositions } from './event-positions.ts'
import { Hosts } from './hosts.ts'

/** Pages of a table are left this full (percent): an update finds room beside the row, and no index has to change (HOT). */
const LAST_REQUESTS_FILLFACTOR = 50
const SESSIONS_FILLFACTOR = 90

export const POSTGRES_DIALECT: SchemaDialect = {
  keyType: 'bigint',
  identity: column => column.generatedAlwaysAsIdentity(),
  // By code points, as the other engine and our cursors do, whatever the database's language is.
  text: sql`text collate "C"`,
  sessionsOptions: sql`with (fillfactor = ${sql.lit(SESSIONS_FILLFACTOR)})`,
  lastRequestsOptions: sql`with (fillfactor = ${sql.lit(LAST_REQUESTS_FILLFACTOR)})`,
  appendOnlyOptions: null,
  // A row of an index has 2,700 bytes at most: less than two long names in some scripts.
  coveringIndexes: false,
  singleWriter: false,
  sharedRateLimits: true,
}

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
