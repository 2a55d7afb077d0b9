import { sql } from 'kysely'
import type { SchemaWords } from '../migrations.ts'

/** Pages of a table are left this full (percent): an update finds room beside the row, and no index has to change (HOT). */
const FILL_NOTED_EACH_SECOND = 50
const FILL_NOTED_NOW_AND_THEN = 90

export const POSTGRES_SCHEMA: SchemaWords = {
  number: 'bigint',
  numbered: column => column.generatedAlwaysAsIdentity(),
  // By code points, as the other engine and our cursors do, whatever the database's language is.
  text: sql`text collate "C"`,
  sessionsEnd: sql`with (fillfactor = ${sql.lit(FILL_NOTED_NOW_AND_THEN)})`,
  lastRequestsEnd: sql`with (fillfactor = ${sql.lit(FILL_NOTED_EACH_SECOND)})`,
  // A row of an index has 2,700 bytes at most: less than two long names in some scripts.
  wideIndexes: false,
}
