/**
 * What a database needs, checked at the start: without it the service would be ready, and requests would fail for as long as it
 * runs. Settings that a connection can change are not among them (`connection.ts`). Each refusal says what to change.
 */
import type { Schema } from '../migrations/schema.ts'
import { tablesOf } from '../stored-feature.ts'
import type { Connection } from './connection.ts'

/** PostgreSQL 15. */
const MIN_VERSION = 150_000

/** Connections besides those for statements: one listens for changes. */
const LISTENERS = 1

interface Properties {
  readonly versionNumber: number
  readonly version: string
  readonly encoding: string
  readonly isStandby: boolean
  readonly isReadOnly: boolean
  /** The setting of the server, the database and the role, before this connection changes it. */
  readonly synchronousCommit: string
  readonly replicationRole: string
  readonly searchPath: string
  readonly schema: string | null
  readonly database: string
  readonly role: string
  /** How many connections the role can have in all. */
  readonly maxConnections: number
}

const SELECT_PROPERTIES = `SELECT current_setting('server_version_num')::int AS "versionNumber",
    current_setting('server_version') AS version, current_setting('server_encoding') AS encoding,
    pg_is_in_recovery() AS "isStandby", current_setting('transaction_read_only') = 'on' AS "isReadOnly",
    (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit') AS "synchronousCommit",
    current_setting('session_replication_role') AS "replicationRole",
    current_setting('search_path') AS "searchPath", current_schema() AS schema,
    current_database() AS database, rolname AS role, least(
      current_setting('max_connections')::int - CASE WHEN rolsuper THEN 0
        ELSE current_setting('superuser_reserved_connections')::int
          + coalesce(current_setting('reserved_connections', true)::int, 0) END,
      CASE WHEN rolsuper OR rolconnlimit < 0 THEN NULL ELSE rolconnlimit END,
      CASE WHEN rolsuper OR datconnlimit < 0 THEN NULL ELSE datconnlimit END
    ) AS "maxConnections"
  FROM pg_roles, pg_database WHERE rolname = current_user AND datname = current_database()`

type Requirement = (properties: Properties, connections: number) => string | false

const REQUIREMENTS: readonly Requirement[] = [
  ({ versionNumber, version }) =>
    versionNumber < MIN_VERSION && `the server is PostgreSQL ${version}: use PostgreSQL 15 or newer`,
  ({ encoding, database }) =>
    encoding !== 'UTF8' &&
    `the encoding of ${database} is ${encoding}: create a database with ENCODING 'UTF8' TEMPLATE template0, and use that one`,
  ({ isStandby }) =>
    isStandby && 'the server is a standby, which takes no writes: name the primary in the URL',
  ({ isReadOnly }) =>
    isReadOnly &&
    'it takes no writes: default_transaction_read_only is on, set it to off for the database and the role',
  ({ synchronousCommit }) =>
    synchronousCommit === 'off' &&
    'it acknowledges writes that are not on disk: synchronous_commit is off, set it to on for the database and the role',
  ({ replicationRole }) =>
    replicationRole !== 'origin' &&
    `it does not check foreign keys: session_replication_role is ${replicationRole}, set it to origin`,
  ({ schema, searchPath, role }) =>
    schema === null &&
    `the role ${role} may use no schema of its search_path (${searchPath}): create one of them, or grant USAGE on it`,
  ({ maxConnections, role }, connections) =>
    connections + LISTENERS > maxConnections &&
    `the role ${role} can have ${maxConnections} connections, and this process needs ${connections + LISTENERS}: lower ` +
      'DATABASE_CONNECTIONS, or raise max_connections of the server or the CONNECTION LIMIT of the role or the database',
]

/** @param connections that this process uses for statements. @throws {Error} that says what to change; of the connection. */
export const assertUsable = async (client: Connection, connections: number): Promise<void> => {
  const { rows } = await client.query<Properties>(SELECT_PROPERTIES)
  for (const requirement of REQUIREMENTS) {
    const objection = requirement(rows[0] as Properties, connections)
    if (objection !== false) throw new Error(objection)
  }
}

/** How often two connections through a pooler are compared: other clients may change which server process is the next one. */
const ROUNDS = 3

const pidOf = async (client: Connection): Promise<number> => {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  return rows[0]?.pid ?? 0
}

/**
 * Refuses a pooler that gives a server process to another client after each transaction. Settings, advisory locks, notifications and
 * prepared statements belong to the process. In session mode a connection keeps its process, and shares it with none.
 * @param other a second connection to the same address.
 * @throws {Error} that says what to change; of a connection.
 */
export const assertOwnServerProcess = async (client: Connection, other: Connection): Promise<void> => {
  for (let round = 0; round < ROUNDS; round += 1) {
    // Twice, as a pooler with two server processes may take them in turn.
    const own = [await pidOf(client), await pidOf(client)]
    const foreign = await pidOf(other)
    own.push(await pidOf(client))
    if (new Set(own).size > 1 || own.includes(foreign))
      throw new Error(
        'the connection leads through a pooler that shares server processes between clients: connect directly, or set its ' +
          'pool mode to session (PgBouncer: pool_mode = session)',
      )
  }
}

/** @throws {Error} that says what to change, if the role may not create the tables of a migration; of the connection. */
export const assertMayCreateTables = async (client: Connection): Promise<void> => {
  const { rows } = await client.query<{ schema: string; role: string; isAllowed: boolean }>(
    `SELECT current_schema() AS schema, current_user AS role,
      has_schema_privilege(current_schema(), 'CREATE') AS "isAllowed"`,
  )
  const [{ schema, role, isAllowed } = { schema: '', role: '', isAllowed: true }] = rows
  if (!isAllowed)
    throw new Error(
      `the role ${role} may not create tables: GRANT CREATE ON SCHEMA ${schema} TO ${role}, or start once with a role that may`,
    )
}

const SELECT_MISSING_PRIVILEGES = `SELECT current_user AS role, privilege, relname AS name,
    relnamespace::regnamespace AS schema
  FROM pg_class, unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) AS privilege
  WHERE relname = ANY ($1) AND relkind IN ('r', 'p') AND pg_table_is_visible(pg_class.oid)
    AND NOT has_table_privilege(pg_class.oid, privilege)
  ORDER BY name, privilege LIMIT 1`

/** @throws {Error} that says what to change, if the role may not read and write the tables; of the connection. */
export const assertMayWriteTables = async (
  client: Connection,
  { tables, features }: Schema,
): Promise<void> => {
  const names = [...tables, ...tablesOf(features).map(({ name }) => name)]
  const { rows } = await client.query<{ role: string; privilege: string; name: string; schema: string }>(
    SELECT_MISSING_PRIVILEGES,
    [names],
  )
  for (const { role, privilege, name, schema } of rows)
    throw new Error(
      `the role ${role} has no right to ${privilege} in the table ${name}: ` +
        `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${role}`,
    )
}
