/**
 * When the user of a session last proved their identity. A column without a default is added without writing a row. Instances of the
 * previous release leave it empty: such a session counts from when it was opened.
 */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const reauthentication = (): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('sessions').addColumn('authenticated_at', 'bigint').execute()
  },
})
