/** Users, their sessions, and the timestamps of their last requests. */
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { type SchemaDialect, withTableOptions } from './schema-dialect.ts'

const LIST_KEYS = ['created_at', 'first_name_key', 'last_name_key']

export const accounts = (dialect: SchemaDialect): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    const { keyType, text, coveringIndexes } = dialect
    await db.schema
      .createTable('users')
      .addColumn('key', keyType, column => dialect.identity(column.primaryKey()))
      .addColumn('id', text, column => column.notNull().unique())
      .addColumn('email', text, column => column.notNull())
      .addColumn('password_hash', text, column => column.notNull())
      .addColumn('first_name', text)
      .addColumn('last_name', text)
      .addColumn('first_name_key', text, column => column.notNull())
      .addColumn('last_name_key', text, column => column.notNull())
      .addColumn('email_verified', 'integer', column => column.notNull())
      .addColumn('disabled', 'integer', column => column.notNull())
      .addColumn('created_at', 'bigint', column => column.notNull())
      .addColumn('updated_at', 'bigint', column => column.notNull())
      .execute()
    await db.schema.createIndex('users_by_email').on('users').column('email').unique().execute()
    // Lists are read in the order of one of these indexes, from the cursor on. A search reads a range of its keys.
    for (const key of LIST_KEYS) {
      const others = LIST_KEYS.filter(other => other !== key)
      await db.schema
        .createIndex(`users_by_${key}`)
        .on('users')
        .columns(coveringIndexes ? [key, 'id', 'disabled', ...others] : [key, 'id'])
        .execute()
    }
    // A partial index: few users are disabled, and sign-ups do not write to it.
    await db.schema
      .createIndex('users_disabled')
      .on('users')
      .columns(
        coveringIndexes
          ? ['created_at', 'id', 'first_name_key', 'last_name_key', 'email']
          : ['created_at', 'id'],
      )
      .where(sql.ref('disabled'), '=', sql.lit(1))
      .execute()
    const sessions = db.schema
      .createTable('sessions')
      .addColumn('id', text, column => column.primaryKey())
      .addColumn('user_key', keyType, column => column.notNull().references('users.key').onDelete('cascade'))
      .addColumn('created_at', 'bigint', column => column.notNull())
      .addColumn('expires_at', 'bigint', column => column.notNull())
      .addColumn('last_request_at', 'bigint', column => column.notNull())
      .addColumn('ip', 'text')
      .addColumn('user_agent', 'text')
    await withTableOptions(sessions, dialect.sessionsOptions).execute()
    // The order in which a user's sessions are listed.
    await db.schema
      .createIndex('sessions_by_user_key')
      .on('sessions')
      .columns(['user_key', 'created_at', 'id'])
      .execute()
    const lastRequests = db.schema
      .createTable('last_requests')
      .addColumn('user_key', keyType, column =>
        column.primaryKey().references('users.key').onDelete('cascade'),
      )
      .addColumn('at', 'bigint', column => column.notNull())
    await withTableOptions(lastRequests, dialect.lastRequestsOptions).execute()
  },
})
