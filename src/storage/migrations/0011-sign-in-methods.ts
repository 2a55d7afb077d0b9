/**
 * Users without a password, and how sessions were opened. Columns without a default are added without writing a row. Instances of the
 * previous release open sessions without a method, and verify no password against a hash that is null.
 */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const signInMethods = (): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .alterTable('users')
      .alterColumn('password_hash', column => column.dropNotNull())
      .execute()
    await db.schema.alterTable('sessions').addColumn('method', 'text').execute()
    await db.schema.alterTable('sessions').addColumn('amr', 'text').execute()
  },
})
