/** Renames `mailed_tokens` to `email_tokens`, the name that the code uses. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const emailTokens = (): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.dropIndex('mailed_tokens_by_user_key').execute()
    await db.schema.alterTable('mailed_tokens').renameTo('email_tokens').execute()
    await db.schema.createIndex('email_tokens_by_user_key').on('email_tokens').column('user_key').execute()
  },
})
