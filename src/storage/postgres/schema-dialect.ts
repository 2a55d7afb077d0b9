import { sql } from 'kysely'
import type { SchemaDialect } from '../migrations/schema-dialect.ts'

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
  appendedOptions: null,
  // A row of an index has 2,700 bytes at most: less than two long names in some scripts.
  coveringIndexes: false,
  oneWriter: false,
  sharedRateLimits: true,
}
