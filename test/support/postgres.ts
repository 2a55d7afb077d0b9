/** A PostgreSQL database for each test, on the server of `npm test` or, for a single file, on a separate one. */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import pg from 'pg'
import { schemaOf } from '#core/store/migrations'
import { allFeatures } from '#features/built-in'
import { migrate } from '#storage/postgres/migrate'
import { startPostgres } from '../../scripts/postgres-server.ts'
import type { Context } from './build.ts'

let own: Promise<string> | null = null

const startOwn = async (): Promise<string> => {
  const server = await startPostgres()
  let stopping = false
  // All tests of the file are done.
  process.on('beforeExit', () => {
    if (!stopping) void server.stop()
    stopping = true
  })
  return server.url
}

const serverUrl = (): Promise<string> => {
  const given = process.env.TEST_DATABASE_URL
  if (given) return Promise.resolve(given)
  own ??= startOwn()
  return own
}

/** Runs `work` with a connection of its own. */
const connected = async <Result>(
  url: string,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** Runs one statement on a connection of its own. */
export const query = (url: string, text: string): Promise<Record<string, unknown>[]> =>
  connected(url, async client => (await client.query(text)).rows)

/** @param template the database to copy. */
const create = async (template = 'template1'): Promise<string> => {
  const server = await serverUrl()
  const name = `gatehouse_test_${randomBytes(8).toString('hex')}`
  await query(server, `CREATE DATABASE ${name} TEMPLATE ${template}`)
  const url = new URL(server)
  url.pathname = name
  return url.href
}

const nameOf = (url: string): string => new URL(url).pathname.slice(1)

const drop = async (url: string): Promise<void> => {
  await query(await serverUrl(), `DROP DATABASE IF EXISTS ${nameOf(url)} WITH (FORCE)`)
}

/** Of the database that is connected. The service would hide them by repeating the transaction. */
const DEADLOCKS = `(SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database())`

const assertNoDeadlock = (row: Record<string, unknown> | undefined): void => {
  if (row?.deadlocks !== 0) throw new Error('transactions deadlocked')
}

/**
 * A database without a schema, removed with the test. The test fails after a deadlock.
 * @returns its URL.
 */
export const createDatabase = async (t: Context, { provokesDeadlocks = false } = {}): Promise<string> => {
  const url = await create()
  t.teardown(async () => {
    try {
      if (!provokesDeadlocks) assertNoDeadlock((await query(url, `SELECT ${DEADLOCKS} AS deadlocks`))[0])
    } finally {
      await drop(url)
    }
  })
  return url
}

/** Everything that a test may have changed besides rows, as lines of text. */
const SCHEMA = `
  SELECT concat_ws(' ', nspname, relname, relkind, relacl, reloptions, relpersistence) AS line
  FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
  WHERE nspname !~ '^(pg_|information_schema$)'
  UNION ALL SELECT concat_ws(' ', attrelid::regclass, attnum, attname, atttypid::regtype, attnotnull, attidentity)
  FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
  WHERE relnamespace = 'public'::regnamespace AND attnum > 0
  UNION ALL SELECT concat_ws(' ', adrelid::regclass, adnum, pg_get_expr(adbin, adrelid)) FROM pg_attrdef
  UNION ALL SELECT concat_ws(' ', indisvalid, pg_get_indexdef(indexrelid)) FROM pg_index
  JOIN pg_class ON pg_class.oid = indexrelid WHERE relnamespace = 'public'::regnamespace
  UNION ALL SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
  UNION ALL SELECT concat_ws(' ', proname, prosrc) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
  UNION ALL SELECT concat_ws(' ', tgenabled, pg_get_triggerdef(oid)) FROM pg_trigger WHERE NOT tgisinternal
  UNION ALL SELECT concat_ws(' ', setrole, setconfig) FROM pg_db_role_setting
  JOIN pg_database ON pg_database.oid = setdatabase WHERE datname = current_database()`

/** Tables whose rows belong to the schema. */
const RECORDS = ['kysely_migration', 'feature_migrations', 'migrated_features']

/** What must be as before, besides rows. A connection that a test has left open could still write. */
const STATE = `SELECT md5(string_agg(line, '' ORDER BY line)) AS schema, (
    SELECT count(*)::int FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
  ) AS connections, ${DEADLOCKS} AS deadlocks
  FROM (${[SCHEMA, ...RECORDS.map(table => `SELECT ${table}::text FROM ${table}`)].join(' UNION ALL ')}) AS lines`

/** Only tables with rows, because a truncation writes new files for the table and its indexes. Forgets deadlocks and plans too. */
const EMPTY = `DO $$
  DECLARE name text; has_rows boolean; filled text;
  BEGIN
    FOR name IN SELECT quote_ident(tablename) FROM pg_tables
      WHERE schemaname = 'public' AND tablename <> ALL ('{${RECORDS}}') LOOP
      EXECUTE 'SELECT EXISTS (SELECT FROM ' || name || ')' INTO has_rows;
      IF has_rows THEN filled := concat_ws(', ', filled, name); END IF;
    END LOOP;
    IF filled IS NOT NULL THEN EXECUTE 'TRUNCATE ' || filled || ' RESTART IDENTITY CASCADE'; END IF;
    DELETE FROM pg_statistic;
    PERFORM pg_stat_reset();
  END $$`

/** Copies of the template without rows, which no test uses. */
const idle: string[] = []

/** The URL of a database with the schema of the service, and its state. */
let template: Promise<{ readonly url: string; readonly state: unknown }> | null = null

const createTemplate = async () => {
  const url = await create()
  await migrate(url, schemaOf(allFeatures()))
  const [state] = await query(url, STATE)
  return { url, state }
}

/** A copy takes a quarter of the migrations, and has their times, so that it can be compared. */
const copyTemplate = async (): Promise<string> => {
  template ??= createTemplate()
  return create(nameOf((await template).url))
}

/** Makes the database what {@link copyTemplate} returned. @returns whether that is possible. */
const restore = (url: string): Promise<boolean> =>
  connected(url, async client => {
    const [state] = (await client.query(STATE)).rows
    assertNoDeadlock(state)
    if (!isDeepStrictEqual(state, (await template)?.state)) return false
    await client.query(EMPTY)
    return true
  })

/**
 * A database with the schema of the service and without rows. Later tests of this process use it again, unless a test has changed
 * more than rows: creating and removing a database takes four times as long. The test fails after a deadlock.
 * @returns its URL.
 */
export const newDatabase = async (t: Context): Promise<string> => {
  const url = idle.pop() ?? (await copyTemplate())
  t.teardown(async () => {
    let isRestored = false
    try {
      isRestored = await restore(url)
    } finally {
      if (isRestored) idle.push(url)
      else await drop(url)
    }
  })
  return url
}

process.on('beforeExit', () => {
  // A server of this process is removed with its databases.
  if (own !== null) return
  for (const url of idle.splice(0)) void drop(url)
  void template?.then(({ url }) => drop(url))
  template = null
})

/** Blocks the insertion of a user with this e-mail, in the middle of a bulk statement. */
export const holdAt = async (url: string, email: string) => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END $$;
    CREATE TRIGGER hold BEFORE INSERT ON users FOR EACH ROW WHEN (NEW.email = '${email}') EXECUTE FUNCTION hold()`)
  // Only in this database: the view also has the locks of others on the server, of tests that run at the same time.
  const waiting = `SELECT 1 FROM pg_locks JOIN pg_database ON pg_database.oid = database
    WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted`
  return {
    close: () => client.query('SELECT pg_advisory_lock(1)'),
    async arrival(): Promise<void> {
      while ((await client.query(waiting)).rows.length === 0) await sleep(20)
    },
    open: () => client.query('SELECT pg_advisory_unlock(1)'),
    end: () => client.end(),
  }
}

/** Blocks readers of users. */
export const holdReaders = async (url: string) => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('BEGIN; LOCK TABLE users')
  const waiting = `SELECT 1 FROM pg_locks WHERE relation = 'users'::regclass AND NOT granted`
  return {
    async arrival(): Promise<void> {
      while ((await client.query(waiting)).rows.length === 0) await sleep(20)
    },
    end: () => client.end(),
  }
}
