/** What the life of an account leaves behind: versions, events, tokens that were mailed, counted requests. */
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { ending, type SchemaDialect } from './schema-dialect.ts'

export const accountLife = (dialect: SchemaDialect): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    const { keyType, text, appendedOptions, sharedRateLimits } = dialect
    // Counts the changes of a user: what an ETag stands for.
    await db.schema
      .alterTable('users')
      .addColumn('version', 'integer', column => column.notNull().defaultTo(1))
      .execute()
    await db.schema.alterTable('sessions').addColumn('impersonated_by', 'text').execute()
    // Ids are UUIDv7 of the event's timestamp, so their order is that of time. No reference to users: it outlives them.
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
    await ending(events, appendedOptions).execute()
    for (const column of ['user_id', 'type']) {
      await db.schema.createIndex(`events_by_${column}`).on('events').columns([column, 'id']).execute()
    }
    // The token itself is in the mail alone: whoever reads this table can use none. Digests begin with their timestamp, so that
    // every insert is at the end, and what is old at the beginning.
    const emailTokens = db.schema
      .createTable('mailed_tokens')
      .addColumn('digest', text, column => column.primaryKey())
      .addColumn('purpose', 'text', column => column.notNull())
      .addColumn('user_key', keyType, column => column.notNull().references('users.key').onDelete('cascade'))
      .addColumn('email', text, column => column.notNull())
      .addColumn('created_at', 'bigint', column => column.notNull())
      .addColumn('expires_at', 'bigint', column => column.notNull())
    await ending(emailTokens, appendedOptions).execute()
    await db.schema.createIndex('mailed_tokens_by_user_key').on('mailed_tokens').column('user_key').execute()
    if (!sharedRateLimits) return
    // As rate-limiter-flexible wants it; `expire` in milliseconds since the epoch. Unlogged: counting waits for no disk, and
    // begins anew after a crash.
    await db.schema
      .createTable('rate_limits')
      .modifyFront(sql`unlogged`)
      .addColumn('key', 'varchar(255)', column => column.primaryKey())
      .addColumn('points', 'integer', column => column.notNull().defaultTo(0))
      .addColumn('expire', 'bigint')
      .execute()
  },
})
