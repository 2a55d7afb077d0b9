/**
 * Roles and metadata of users. Columns without a default are added without writing a row, so a million users take milliseconds.
 * Instances of the previous release leave the columns empty, and delete the rows of `user_roles` by its foreign key.
 */
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { type SchemaDialect, withTableOptions } from './schema-dialect.ts'

const COLUMNS = ['roles', 'user_metadata', 'app_metadata']

/** By triggers, so that every statement that writes users keeps the table complete, and one without roles costs nothing more. */
const TRIGGERS: Readonly<Record<SchemaDialect['triggerLanguage'], readonly string[]>> = {
  sqlite: [
    `CREATE TRIGGER user_roles_of_new_user AFTER INSERT ON users WHEN NEW.roles IS NOT NULL BEGIN
      INSERT INTO user_roles (role, user_created_at, user_id, user_key)
      SELECT value, NEW.created_at, NEW.id, NEW.key FROM json_each(NEW.roles);
    END`,
    `CREATE TRIGGER user_roles_of_changed_user AFTER UPDATE OF roles, created_at ON users
    WHEN NEW.roles IS NOT OLD.roles OR NEW.created_at IS NOT OLD.created_at BEGIN
      DELETE FROM user_roles WHERE user_key = NEW.key;
      INSERT INTO user_roles (role, user_created_at, user_id, user_key)
      SELECT value, NEW.created_at, NEW.id, NEW.key FROM json_each(NEW.roles) WHERE NEW.roles IS NOT NULL;
    END`,
  ],
  plpgsql: [
    `CREATE FUNCTION store_user_roles() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF TG_OP = 'UPDATE' THEN DELETE FROM user_roles WHERE user_key = NEW.key; END IF;
      INSERT INTO user_roles (role, user_created_at, user_id, user_key)
      SELECT role, NEW.created_at, NEW.id, NEW.key FROM json_array_elements_text(NEW.roles::json) AS role;
      RETURN NULL;
    END $$`,
    `CREATE TRIGGER user_roles_of_new_user AFTER INSERT ON users
    FOR EACH ROW WHEN (NEW.roles IS NOT NULL) EXECUTE FUNCTION store_user_roles()`,
    `CREATE TRIGGER user_roles_of_changed_user AFTER UPDATE OF roles, created_at ON users
    FOR EACH ROW WHEN (NEW.roles IS DISTINCT FROM OLD.roles OR NEW.created_at <> OLD.created_at)
    EXECUTE FUNCTION store_user_roles()`,
  ],
}

export const userRecord = (dialect: SchemaDialect): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    const { keyType, text, triggerLanguage, userRolesOptions } = dialect
    for (const column of COLUMNS) await db.schema.alterTable('users').addColumn(column, 'text').execute()
    const userRoles = db.schema
      .createTable('user_roles')
      .addColumn('role', text, column => column.notNull())
      .addColumn('user_created_at', 'bigint', column => column.notNull())
      .addColumn('user_id', text, column => column.notNull())
      .addColumn('user_key', keyType, column => column.notNull().references('users.key').onDelete('cascade'))
      // The order in which users are listed.
      .addPrimaryKeyConstraint('user_roles_pkey', ['role', 'user_created_at', 'user_id'] as never)
    await withTableOptions(userRoles, userRolesOptions).execute()
    await db.schema
      .createIndex('user_roles_by_user_key')
      .unique()
      .on('user_roles')
      .columns(['user_key', 'role'])
      .execute()
    for (const trigger of TRIGGERS[triggerLanguage]) await sql.raw(trigger).execute(db)
  },
})
