/**
 * The networks from which users have signed in. The network of a session is a column, so that a trigger can note it with every statement
 * that opens one: in its transaction, without a further round trip. It writes at most once a day for each network. A column without a
 * default is added without writing a row. Instances of the previous release leave it empty.
 */
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { type SchemaDialect, withTableOptions } from './schema-dialect.ts'

/** The newest ones of a user. Each one more is another place from which passwords can be guessed. */
const MAX_KNOWN_NETWORKS = 10

/** Milliseconds. */
const DAY = 86_400_000

const IS_RECENT = `EXISTS (
  SELECT 1 FROM known_networks WHERE digest = NEW.network AND signed_in_at > NEW.created_at - ${DAY}
)`

const NOTE = `INSERT INTO known_networks (digest, user_key, signed_in_at)
  VALUES (NEW.network, NEW.user_key, NEW.created_at)
  ON CONFLICT (digest) DO UPDATE SET signed_in_at = excluded.signed_in_at`

/** @param offset of the rows of a user that are too many, newest first. */
const removeOldest = (offset: string): string => `DELETE FROM known_networks WHERE digest IN (
  SELECT digest FROM known_networks WHERE user_key = NEW.user_key ORDER BY signed_in_at DESC, digest ${offset}
)`

const TRIGGERS: Readonly<Record<SchemaDialect['triggerLanguage'], readonly string[]>> = {
  sqlite: [
    `CREATE TRIGGER known_networks_of_sessions AFTER INSERT ON sessions
    WHEN NEW.network IS NOT NULL AND NOT ${IS_RECENT} BEGIN
      ${NOTE};
      ${removeOldest(`LIMIT -1 OFFSET ${MAX_KNOWN_NETWORKS}`)};
    END`,
  ],
  plpgsql: [
    `CREATE FUNCTION note_known_network() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF ${IS_RECENT} THEN RETURN NULL; END IF;
      ${NOTE};
      ${removeOldest(`OFFSET ${MAX_KNOWN_NETWORKS}`)};
      RETURN NULL;
    END $$`,
    `CREATE TRIGGER known_networks_of_sessions AFTER INSERT ON sessions
    FOR EACH ROW WHEN (NEW.network IS NOT NULL) EXECUTE FUNCTION note_known_network()`,
  ],
}

export const knownNetworks = (dialect: SchemaDialect): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    const { keyType, text, triggerLanguage, userRolesOptions } = dialect
    await db.schema.alterTable('sessions').addColumn('network', 'text').execute()
    const table = db.schema
      .createTable('known_networks')
      .addColumn('digest', text, column => column.primaryKey().notNull())
      .addColumn('user_key', keyType, column => column.notNull().references('users.key').onDelete('cascade'))
      .addColumn('signed_in_at', 'bigint', column => column.notNull())
    await withTableOptions(table, userRolesOptions).execute()
    await db.schema
      .createIndex('known_networks_by_user_key')
      .on('known_networks')
      .columns(['user_key', 'signed_in_at'])
      .execute()
    // For the clean-up.
    await db.schema
      .createIndex('known_networks_by_signed_in_at')
      .on('known_networks')
      .column('signed_in_at')
      .execute()
    for (const trigger of TRIGGERS[triggerLanguage]) await sql.raw(trigger).execute(db)
  },
})
