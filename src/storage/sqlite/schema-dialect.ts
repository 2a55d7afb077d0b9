import { sql } from 'kysely'
import type { SchemaDialect } from '../migrations/schema-dialect.ts'

export const SQLITE_DIALECT: SchemaDialect = {
  keyType: 'integer',
  identity: column => column.autoIncrement(),
  text: 'text',
  // The id finds the row itself, without a second tree between them.
  sessionsOptions: sql`without rowid`,
  lastRequestsOptions: null,
  appendedOptions: sql`without rowid`,
  // A row of the table that is not in memory is a read of the disk each, 1,000 of them 50 to 80 ms. That costs 50 MB of 590
  // at a million users; an insert takes as long as without, within what can be measured (150 µs).
  coveringIndexes: true,
  oneWriter: true,
  // One process counts in its own memory.
  sharedRateLimits: false,
}
