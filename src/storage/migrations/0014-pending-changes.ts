/**
 * What users have begun with a proof of identity, and in which session. What an instance of the previous release begins has no row: a change of
 * the e-mail ends whenever a proof of its user does, the others have to be begun again, within the hour for which they would have lived.
 */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { SchemaDialect } from './schema-dialect.ts'

export const pendingChanges = ({ keyType, text }: SchemaDialect): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('pending_changes')
      .addColumn('id', text, column => column.primaryKey().notNull())
      .addColumn('user_key', keyType, column => column.notNull().references('users.key').onDelete('cascade'))
      .addColumn('session_id', text, column => column.notNull())
      .addColumn('needs_code', 'integer', column => column.notNull())
      .addColumn('expires_at', 'bigint', column => column.notNull())
      .execute()
    await db.schema
      .createIndex('pending_changes_by_user_key')
      .on('pending_changes')
      .column('user_key')
      .execute()
    // For the clean-up.
    await db.schema
      .createIndex('pending_changes_by_expires_at')
      .on('pending_changes')
      .column('expires_at')
      .execute()
  },
})
