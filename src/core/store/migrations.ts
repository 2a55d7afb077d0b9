/** The schema of the core as SQL, in the order in which it came about. A released migration is never changed. */
import { partitionEvents } from '#storage/migrations/partition-events'
import type { CoreMigration, Schema } from '#storage/migrations/schema'
import { type Engine, SQL_DIALECTS } from '#storage/migrations/session'
import type { StoredFeature } from '#storage/stored-feature'
import { FIELDS } from '../users/fields.ts'
import { WRITTEN_TABLES } from './tables.ts'

const ownMigrations = (engine: Engine): Readonly<Record<string, CoreMigration>> => {
  const { keyType, text } = SQL_DIALECTS[engine]
  const either = (sqlite: string, postgres: string): string => (engine === 'sqlite' ? sqlite : postgres)
  /** The primary key has what is read, in its order: `WITHOUT ROWID` saves a second B-tree. */
  const byPrimaryKey = either('WITHOUT ROWID', '')
  const owner = `user_key ${keyType} NOT NULL REFERENCES users (key) ON DELETE CASCADE`

  return {
    // Lists are read in the order of an index, from the cursor on, and a search reads a range of its keys. On SQLite the indexes cover
    // what lists are filtered by, since each row that is not in memory costs a disk read. PostgreSQL limits an index row to 2,700 bytes,
    // less than two long names in some scripts. `users_disabled` is partial: few users are disabled, and sign-ups do not write to it.
    // The fill factors leave room on the page for the updated row, so no index changes (HOT).
    '0001_accounts': `
      CREATE TABLE users (
        key ${keyType} ${either('PRIMARY KEY AUTOINCREMENT', 'GENERATED ALWAYS AS IDENTITY PRIMARY KEY')},
        id ${text} NOT NULL UNIQUE,
        email ${text} NOT NULL,
        password_hash ${text} NOT NULL,
        first_name ${text},
        last_name ${text},
        first_name_key ${text} NOT NULL,
        last_name_key ${text} NOT NULL,
        email_verified integer NOT NULL,
        disabled integer NOT NULL,
        created_at bigint NOT NULL,
        updated_at bigint NOT NULL
      );
      CREATE UNIQUE INDEX users_by_email ON users (email);
      CREATE INDEX users_by_created_at ON users
        (created_at, id${either(', disabled, first_name_key, last_name_key', '')});
      CREATE INDEX users_by_first_name_key ON users
        (first_name_key, id${either(', disabled, created_at, last_name_key', '')});
      CREATE INDEX users_by_last_name_key ON users
        (last_name_key, id${either(', disabled, created_at, first_name_key', '')});
      CREATE INDEX users_disabled ON users
        (created_at, id${either(', first_name_key, last_name_key, email', '')}) WHERE disabled = 1;

      CREATE TABLE sessions (
        id ${text} PRIMARY KEY,
        ${owner},
        created_at bigint NOT NULL,
        expires_at bigint NOT NULL,
        last_request_at bigint NOT NULL,
        ip text,
        user_agent text
      ) ${either('WITHOUT ROWID', 'WITH (fillfactor = 90)')};
      CREATE INDEX sessions_by_user_key ON sessions (user_key, created_at, id);

      CREATE TABLE last_requests (
        user_key ${keyType} PRIMARY KEY REFERENCES users (key) ON DELETE CASCADE,
        at bigint NOT NULL
      ) ${either('', 'WITH (fillfactor = 50)')};`,

    // The version of a user increases with each change and is the ETag. Events have no foreign key: they remain when their user is deleted.
    // Tokens are stored as digests that begin with a timestamp, so inserts are at the end, and the oldest rows at the start.
    // PostgreSQL's instances share the counts of rate limits, in the table that rate-limiter-flexible requires; unlogged, so counting does
    // not wait for the disk, and counts are lost in a crash.
    '0002_account_life': `
      ALTER TABLE users ADD COLUMN version integer DEFAULT 1 NOT NULL;
      ALTER TABLE sessions ADD COLUMN impersonated_by text;

      CREATE TABLE events (
        id ${text} PRIMARY KEY,
        at bigint NOT NULL,
        type ${text} NOT NULL,
        actor_type text NOT NULL,
        actor_id text,
        user_id ${text} NOT NULL,
        ip text,
        details text
      ) ${byPrimaryKey};
      CREATE INDEX events_by_user_id ON events (user_id, id);
      CREATE INDEX events_by_type ON events (type, id);

      CREATE TABLE mailed_tokens (
        digest ${text} PRIMARY KEY,
        purpose text NOT NULL,
        ${owner},
        email ${text} NOT NULL,
        created_at bigint NOT NULL,
        expires_at bigint NOT NULL
      ) ${byPrimaryKey};
      CREATE INDEX mailed_tokens_by_user_key ON mailed_tokens (user_key);
      ${either(
        '',
        `CREATE UNLOGGED TABLE rate_limits (
          key varchar(255) PRIMARY KEY,
          points integer DEFAULT 0 NOT NULL,
          expire bigint
        );`,
      )}`,

    // Positions of events, in the order in which transactions commit or become visible. Ids are not: they are created before the commit.
    // One transaction writes to SQLite at a time, so an increasing primary key is in that order. On PostgreSQL the position is the number
    // of the transaction, and an event is read only when all transactions with lower numbers have ended. `event_shift` is raised when a
    // database is restored into a server with lower transaction numbers (`src/storage/postgres/event-positions.ts`).
    '0003_event_positions': either(
      `CREATE TABLE counted_events (
        position integer PRIMARY KEY AUTOINCREMENT,
        id text NOT NULL UNIQUE,
        at bigint NOT NULL,
        type text NOT NULL,
        actor_type text NOT NULL,
        actor_id text,
        user_id text NOT NULL,
        ip text,
        details text
      );
      INSERT INTO counted_events (id, at, type, actor_type, actor_id, user_id, ip, details)
        SELECT id, at, type, actor_type, actor_id, user_id, ip, details FROM events ORDER BY id;
      DROP TABLE events;
      ALTER TABLE counted_events RENAME TO events;
      CREATE INDEX events_by_user_id ON events (user_id, id);
      CREATE INDEX events_by_user_id_position ON events (user_id);
      CREATE INDEX events_by_type ON events (type, id);
      CREATE INDEX events_by_type_position ON events (type);`,

      `CREATE FUNCTION event_shift() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 0::bigint';
      ALTER TABLE events ADD COLUMN position bigint DEFAULT 0 NOT NULL;
      ALTER TABLE events ALTER COLUMN position
        SET DEFAULT (pg_current_xact_id()::text::bigint + event_shift());
      CREATE INDEX events_by_position ON events (position, id);
      CREATE INDEX events_by_user_id_position ON events (user_id, position, id);
      CREATE INDEX events_by_type_position ON events (type, position, id);`,
    ),

    '0004_email_tokens': `
      DROP INDEX mailed_tokens_by_user_key;
      ALTER TABLE mailed_tokens RENAME TO email_tokens;
      CREATE INDEX email_tokens_by_user_key ON email_tokens (user_key);`,

    // Columns without a default are added without writing a row: a million users take milliseconds. `user_roles` has the order in which
    // users with a role are listed. Triggers keep it complete after every statement, and one without roles costs nothing more.
    '0005_user_record': `
      ALTER TABLE users ADD COLUMN roles text;
      ALTER TABLE users ADD COLUMN user_metadata text;
      ALTER TABLE users ADD COLUMN app_metadata text;

      CREATE TABLE user_roles (
        role ${text} NOT NULL,
        user_created_at bigint NOT NULL,
        user_id ${text} NOT NULL,
        ${owner},
        CONSTRAINT user_roles_pkey PRIMARY KEY (role, user_created_at, user_id)
      ) ${byPrimaryKey};
      CREATE UNIQUE INDEX user_roles_by_user_key ON user_roles (user_key, role);
      ${either(
        `CREATE TRIGGER user_roles_of_new_user AFTER INSERT ON users WHEN NEW.roles IS NOT NULL BEGIN
          INSERT INTO user_roles (role, user_created_at, user_id, user_key)
          SELECT value, NEW.created_at, NEW.id, NEW.key FROM json_each(NEW.roles);
        END;
        CREATE TRIGGER user_roles_of_changed_user AFTER UPDATE OF roles, created_at ON users
        WHEN NEW.roles IS NOT OLD.roles OR NEW.created_at IS NOT OLD.created_at BEGIN
          DELETE FROM user_roles WHERE user_key = NEW.key;
          INSERT INTO user_roles (role, user_created_at, user_id, user_key)
          SELECT value, NEW.created_at, NEW.id, NEW.key FROM json_each(NEW.roles) WHERE NEW.roles IS NOT NULL;
        END;`,

        `CREATE FUNCTION store_user_roles() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF TG_OP = 'UPDATE' THEN DELETE FROM user_roles WHERE user_key = NEW.key; END IF;
          INSERT INTO user_roles (role, user_created_at, user_id, user_key)
          SELECT role, NEW.created_at, NEW.id, NEW.key FROM json_array_elements_text(NEW.roles::json) AS role;
          RETURN NULL;
        END $$;
        CREATE TRIGGER user_roles_of_new_user AFTER INSERT ON users
        FOR EACH ROW WHEN (NEW.roles IS NOT NULL) EXECUTE FUNCTION store_user_roles();
        CREATE TRIGGER user_roles_of_changed_user AFTER UPDATE OF roles, created_at ON users
        FOR EACH ROW WHEN (NEW.roles IS DISTINCT FROM OLD.roles OR NEW.created_at <> OLD.created_at)
        EXECUTE FUNCTION store_user_roles();`,
      )}`,

    // Events that concern no user, and the sessions that an admin key has opened.
    '0006_admin_keys': `
      ALTER TABLE events ALTER COLUMN user_id DROP NOT NULL;
      CREATE INDEX sessions_by_impersonated_by ON sessions (impersonated_by) WHERE impersonated_by IS NOT NULL;`,

    // When the user of a session last proved their identity; NULL counts as when it was opened.
    '0007_reauthentication': 'ALTER TABLE sessions ADD COLUMN authenticated_at bigint;',

    // Besides the password. Instances of the previous release do not ask for codes: they must end before the first user enrols.
    '0008_factors': `ALTER TABLE users ADD COLUMN factors ${text};`,

    // The networks from which users have signed in. A trigger notes that of each session in the transaction that opens it, at most once a
    // day (86,400,000 ms). Ten for each user: each one more is another place from which passwords can be guessed.
    '0009_known_networks': `
      ALTER TABLE sessions ADD COLUMN network text;
      CREATE TABLE known_networks (
        digest ${text} NOT NULL PRIMARY KEY,
        ${owner},
        signed_in_at bigint NOT NULL
      ) ${byPrimaryKey};
      CREATE INDEX known_networks_by_user_key ON known_networks (user_key, signed_in_at);
      CREATE INDEX known_networks_by_signed_in_at ON known_networks (signed_in_at);
      ${either(
        `CREATE TRIGGER known_networks_of_sessions AFTER INSERT ON sessions
        WHEN NEW.network IS NOT NULL AND NOT EXISTS (
          SELECT 1 FROM known_networks WHERE digest = NEW.network AND signed_in_at > NEW.created_at - 86400000
        ) BEGIN
          INSERT INTO known_networks (digest, user_key, signed_in_at)
          VALUES (NEW.network, NEW.user_key, NEW.created_at)
          ON CONFLICT (digest) DO UPDATE SET signed_in_at = excluded.signed_in_at;
          DELETE FROM known_networks WHERE digest IN (
            SELECT digest FROM known_networks WHERE user_key = NEW.user_key
            ORDER BY signed_in_at DESC, digest LIMIT -1 OFFSET 10
          );
        END;`,

        `CREATE FUNCTION note_known_network() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF EXISTS (
            SELECT 1 FROM known_networks WHERE digest = NEW.network AND signed_in_at > NEW.created_at - 86400000
          ) THEN RETURN NULL; END IF;
          INSERT INTO known_networks (digest, user_key, signed_in_at)
          VALUES (NEW.network, NEW.user_key, NEW.created_at)
          ON CONFLICT (digest) DO UPDATE SET signed_in_at = excluded.signed_in_at;
          DELETE FROM known_networks WHERE digest IN (
            SELECT digest FROM known_networks WHERE user_key = NEW.user_key
            ORDER BY signed_in_at DESC, digest OFFSET 10
          );
          RETURN NULL;
        END $$;
        CREATE TRIGGER known_networks_of_sessions AFTER INSERT ON sessions
        FOR EACH ROW WHEN (NEW.network IS NOT NULL) EXECUTE FUNCTION note_known_network();`,
      )}`,

    // Notices of existing accounts have no link of their own any more. Links that were mailed before reset the password, as they always did.
    '0010_notice_tokens': `
      UPDATE email_tokens SET purpose = 'passwordReset' WHERE purpose = 'accountExists';`,

    // Users without a password, and how sessions were opened.
    '0011_sign_in_methods': `
      ALTER TABLE users ALTER COLUMN password_hash DROP NOT NULL;
      ALTER TABLE sessions ADD COLUMN method text;
      ALTER TABLE sessions ADD COLUMN amr text;`,

    '0013_event_months': engine === 'sqlite' ? '' : partitionEvents,

    // What users have begun with a proof of identity, and in which session. The second index is for the clean-up.
    '0014_pending_changes': `
      CREATE TABLE pending_changes (
        id ${text} NOT NULL PRIMARY KEY,
        ${owner},
        session_id ${text} NOT NULL,
        needs_code integer NOT NULL,
        expires_at bigint NOT NULL
      );
      CREATE INDEX pending_changes_by_user_key ON pending_changes (user_key);
      CREATE INDEX pending_changes_by_expires_at ON pending_changes (expires_at);`,

    // An update finds room on its page and changes no index.
    '0015_process_leases': either(
      '',
      `CREATE TABLE process_leases (
        id ${text} PRIMARY KEY,
        confirmed text NOT NULL,
        renewals bigint NOT NULL
      ) WITH (fillfactor = 50);`,
    ),
  }
}

/**
 * The migrations of the core and of users' fields, by name, in their order. The column of a field has no default: no row is written, and
 * instances of the previous release leave it empty.
 */
export const coreMigrations = (engine: Engine): ReadonlyMap<string, CoreMigration> => {
  const ofFields = FIELDS.flatMap(({ migration, column }): [string, CoreMigration][] =>
    migration === undefined ? [] : [[migration, `ALTER TABLE users ADD COLUMN ${column} text;`]],
  )
  const all = [...Object.entries(ownMigrations(engine)), ...ofFields]
  return new Map(all.sort(([one], [other]) => (one < other ? -1 : 1)))
}

/** The schema of the store with these features. */
export const schemaOf = (features: readonly StoredFeature[] = []): Schema => ({
  migrations: coreMigrations,
  tables: WRITTEN_TABLES,
  features,
})
