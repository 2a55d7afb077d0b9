/**
 * When the user of a session last proved their identity, and which second factors a user has. Columns without a default are added
 * without writing a row. Instances of the previous release leave them empty: a session then counts from when it was opened.
 */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const proofOfIdentity = (): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('sessions').addColumn('authenticated_at', 'bigint').execute()
    await db.schema.alterTable('users').addColumn('factors', 'text').execute()
  },
})
