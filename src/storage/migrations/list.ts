/** All migrations, for both engines. They run in the order of their names. A released migration is never changed. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'
import { FIELDS } from '#core/users/fields'
import { accounts } from './0001-accounts.ts'
import { accountLife } from './0002-account-life.ts'
import { eventPositions } from './0003-event-positions.ts'
import { emailTokens } from './0004-email-tokens.ts'
import { userRecord } from './0005-user-record.ts'
import { adminKeys } from './0006-admin-keys.ts'
import { reauthentication } from './0007-reauthentication.ts'
import { factors } from './0008-factors.ts'
import { knownNetworks } from './0009-known-networks.ts'
import { noticeTokens } from './0010-notice-tokens.ts'
import { signInMethods } from './0011-sign-in-methods.ts'
import { eventMonths } from './0013-event-months.ts'
import { pendingChanges } from './0014-pending-changes.ts'
import type { MigrationName } from './known-schema.ts'
import type { SchemaDialect } from './schema-dialect.ts'

const ownMigrations = (dialect: SchemaDialect): Record<MigrationName, Migration> => ({
  '0001_accounts': accounts(dialect),
  '0002_account_life': accountLife(dialect),
  '0003_event_positions': eventPositions(dialect),
  '0004_email_tokens': emailTokens(),
  '0005_user_record': userRecord(dialect),
  '0006_admin_keys': adminKeys(),
  '0007_reauthentication': reauthentication(),
  '0008_factors': factors(dialect),
  '0009_known_networks': knownNetworks(dialect),
  '0010_notice_tokens': noticeTokens(),
  '0011_sign_in_methods': signInMethods(),
  '0013_event_months': eventMonths(dialect),
  '0014_pending_changes': pendingChanges(dialect),
})

/** Adds the column of a field. Without a default, no row is written. Instances of the previous release leave it empty. */
const addColumn = (column: string): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('users').addColumn(column, 'text').execute()
  },
})

export const migrations = (dialect: SchemaDialect): Readonly<Record<string, Migration>> => {
  const ofFields = FIELDS.flatMap(({ migration, column }): [string, Migration][] =>
    migration === undefined ? [] : [[migration, addColumn(column)]],
  )
  const all = [...Object.entries(ownMigrations(dialect)), ...ofFields]
  return Object.fromEntries(all.sort(([one], [other]) => (one < other ? -1 : 1)))
}
