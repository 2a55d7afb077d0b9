/** Versions of users, impersonation, the audit log, e-mail tokens, and counts of rate limits. */
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { type SchemaDialect, withTableOptions } from './schema-dialect.ts'

export const accountLife = (dialect: SchemaDialect): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    const { keyType, text, appendOnlyOptions, sharedRateLimits } = dialect
    // Incremented with each change of a user. It is the user's ETag.
    await db.schema
      .alterTable('users')
      .addColumn('version', 'integer', column => column.notNull().defaultTo(1))
      .execute()
    await db.schema.alterTable('sessions').addColumn('impersonated_by', 'text').execute()
    // Ids are UUIDv7 of the event's timestamp, so they sort by time. No foreign key: events remain when their user is deleted.
    const events = db.schema
      .createTable('events')
      .addColumn('id', text, column => column.primaryKey())
      .addColumn('at', 'bigint', column => column.notNull())
      .addColumn('type', text, column => column.notNull())
      .addColumn('actor_type', 'text', column => column.notNull())
      .addColumn('actor_id', 'text')
      .addColumn('user_id', text, column => column.notNull())
      .addColumn('ip', 'text')
      .addColumn('details', 'text')
    await withTableOptions(events, appendOnlyOptions).execute()
    for (const column of ['user_id', 'type']) {
      await db.schema.createIndex(`events_by_${column}`).on('events').columns([column, 'id']).execute()
    }
    // The table contains only digests, so that tokens cannot be read from it. Digests begin with a timestamp, so inserts are at the
    // end, and the oldest rows at the start.
    const emailTokens = db.schema
      .createTable('mailed_tokens')
      .addColumn('digest', text, column => column.primaryKey())
      .addColumn('purpose', 'text', column => column.notNull())
      .addColumn('user_key', keyType, column => column.notNull().references('users.key').onDelete('cascade'))
      .addColumn('email', text, column => column.notNull())
      .addColumn('created_at', 'bigint', column => column.notNull())
      .addColumn('expires_at', 'bigint', column => column.notNull())
    await withTableOptions(emailTokens, appendOnlyOptions).execute()
    await db.schema.createIndex('mailed_tokens_by_user_key').on('mailed_tokens').column('user_key').execute()
    if (!sharedRateLimits) return
    // The schema that rate-limiter-flexible requires; `expire` is in milliseconds since the epoch. Unlogged: counting does not wait
    // for the disk, and counts are lost in a crash.
    await db.schema
      .createTable('rate_limits')
      .modifyFront(sql`unlogged`)
      .addColumn('key', 'varchar(255)', column => column.primaryKey())
      .addColumn('points', 'integer', column => column.notNull().defaultTo(0))
      .addColumn('expire', 'bigint')
      .execute()
  },
})
