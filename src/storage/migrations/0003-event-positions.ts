/**
 * Positions of events, for consumers that follow the audit log. They are in the order in which transactions commit or become
 * visible. Ids are not, because they are created before the commit. Events from before this migration come first, by id.
 */
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { SchemaDialect } from './schema-dialect.ts'

/** The columns by which the log is filtered. */
const FILTER_COLUMNS = ['user_id', 'type']

/** One transaction writes at a time, so an increasing primary key is in the order of commits. */
const numberByCounter = async (
  db: Kysely<unknown>,
  { keyType, text, identity }: SchemaDialect,
): Promise<void> => {
  await db.schema
    .createTable('counted_events')
    .addColumn('position', keyType, column => identity(column.primaryKey()))
    .addColumn('id', text, column => column.notNull().unique())
    .addColumn('at', 'bigint', column => column.notNull())
    .addColumn('type', text, column => column.notNull())
    .addColumn('actor_type', 'text', column => column.notNull())
    .addColumn('actor_id', 'text')
    .addColumn('user_id', text, column => column.notNull())
    .addColumn('ip', 'text')
    .addColumn('details', 'text')
    .execute()
  const columns = sql.raw('id, at, type, actor_type, actor_id, user_id, ip, details')
  await sql`INSERT INTO counted_events (${columns}) SELECT ${columns} FROM events ORDER BY id`.execute(db)
  await db.schema.dropTable('events').execute()
  await db.schema.alterTable('counted_events').renameTo('events').execute()
  for (const column of FILTER_COLUMNS) {
    await db.schema.createIndex(`events_by_${column}`).on('events').columns([column, 'id']).execute()
    await db.schema.createIndex(`events_by_${column}_position`).on('events').columns([column]).execute()
  }
}

/**
 * Transactions overlap and commit in any order. So the position of an event is the number of its transaction, and an event is read
 * only when all transactions with lower numbers have ended. `event_shift` is raised when a database is restored into another
 * server, whose transaction numbers are lower (`src/storage/postgres/event-positions.ts`).
 */
const numberByTransaction = async (db: Kysely<unknown>): Promise<void> => {
  await sql`CREATE FUNCTION event_shift() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 0::bigint'`.execute(
    db,
  )
  await db.schema
    .alterTable('events')
    .addColumn('position', 'bigint', column => column.notNull().defaultTo(0))
    .execute()
  await sql`ALTER TABLE events ALTER COLUMN position
    SET DEFAULT (pg_current_xact_id()::text::bigint + event_shift())`.execute(db)
  await db.schema.createIndex('events_by_position').on('events').columns(['position', 'id']).execute()
  for (const column of FILTER_COLUMNS)
    await db.schema
      .createIndex(`events_by_${column}_position`)
      .on('events')
      .columns([column, 'position', 'id'])
      .execute()
}

export const eventPositions = (dialect: SchemaDialect): Migration => ({
  up: (db: Kysely<unknown>): Promise<void> =>
    dialect.singleWriter ? numberByCounter(db, dialect) : numberByTransaction(db),
})
