/** Migrates the schema of a PostgreSQL database. */
import { Kysely, PostgresDialect, sql } from 'kysely'
import { Migrator } from 'kysely/migration'
import pg from 'pg'
import { prepareEventMonths } from '../migrations/0013-event-months.ts'
import { migrateFeatures } from '../migrations/feature-migrations.ts'
import { migrations } from '../migrations/list.ts'
import { KEY_TYPES, type SchemaDialect } from '../migrations/schema-dialect.ts'
import type { StoredFeature } from '../stored-feature.ts'
import { Connection, migrationOptions } from './connection.ts'
import { ignore } from './database.ts'

/** Percent to which pages are filled: an updated row then fits on its page, and no index changes (HOT). */
const LAST_REQUESTS_FILLFACTOR = 50
const SESSIONS_FILLFACTOR = 90

export const POSTGRES_DIALECT: SchemaDialect = {
  engine: 'postgres',
  keyType: KEY_TYPES.postgres,
  identity: column => column.generatedAlwaysAsIdentity(),
  // Ordered by code points, as SQLite and our cursors do, independent of the database's locale.
  text: sql`text collate "C"`,
  sessionsOptions: sql`with (fillfactor = ${sql.lit(SESSIONS_FILLFACTOR)})`,
  lastRequestsOptions: sql`with (fillfactor = ${sql.lit(LAST_REQUESTS_FILLFACTOR)})`,
  userRolesOptions: null,
  appendOnlyOptions: null,
  // An index row is limited to 2,700 bytes, less than two long names in some scripts.
  coveringIndexes: false,
  triggerLanguage: 'plpgsql',
  singleWriter: false,
  sharedRateLimits: true,
}

/** Any constant: the key of the lock under which the migrations of features run. */
const FEATURES_LOCK = 7_239_180_445

/**
 * Migrates the schema in one transaction under a lock of the database, so that instances that start at once do so one after the
 * other.
 * @param url of one server.
 * @throws {Error} of the connection or a migration.
 */
export const migrate = async (url: string, features: readonly StoredFeature[] = []): Promise<void> => {
  class Client extends Connection {
    constructor() {
      super(migrationOptions(url))
    }
  }
  const pool = new pg.Pool({ Client, max: 1 }).on('error', ignore)
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) })
  const provider = { getMigrations: async () => migrations(POSTGRES_DIALECT) }
  try {
    await prepareEventMonths(db)
    const { error } = await new Migrator({ db, provider }).migrateToLatest()
    if (error !== undefined) throw error
    await db.transaction().execute(async transaction => {
      await sql`SELECT pg_advisory_xact_lock(${FEATURES_LOCK})`.execute(transaction)
      await migrateFeatures(transaction, POSTGRES_DIALECT, features)
    })
  } finally {
    await db.destroy()
  }
}
