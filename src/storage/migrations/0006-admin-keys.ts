/**
 * What admin keys need of the tables of the core: events that concern no user, and the sessions that a key has opened. Both engines
 * remove the constraint without reading a row, and impersonated sessions are few. Instances of the previous release show the missing
 * user as an empty id.
 */
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const adminKeys = (): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .alterTable('events')
      .alterColumn('user_id', column => column.dropNotNull())
      .execute()
    await db.schema
      .createIndex('sessions_by_impersonated_by')
      .on('sessions')
      .column('impersonated_by')
      .where(sql.ref('impersonated_by'), 'is not', null)
      .execute()
  },
})
