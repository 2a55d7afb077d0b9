/**
 * Notices of existing accounts have no link of their own any more. Links that were mailed before are links that reset the password, which
 * they always did.
 */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const noticeTokens = (): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    await (db as Kysely<{ email_tokens: { purpose: string } }>)
      .updateTable('email_tokens')
      .set({ purpose: 'passwordReset' })
      .where('purpose', '=', 'accountExists')
      .execute()
  },
})
