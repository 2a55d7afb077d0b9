/** A PostgreSQL database per test, on the server of `npm test` or, for a single file, on a separate one. */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
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

/** Runs one statement on a connection of its own. */
export const query = async (url: string, text: string): Promise<Record<string, unknown>[]> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

/**
 * An empty database, removed with the test. The test fails after a deadlock, which the service would hide by repeating the
 * transaction.
 * @returns its URL.
 */
export const createDatabase = async (t: Context, { provokesDeadlocks = false } = {}): Promise<string> => {
  const server = await serverUrl()
  const name = `gatehouse_test_${randomBytes(8).toString('hex')}`
  await query(server, `CREATE DATABASE ${name}`)
  t.teardown(async () => {
    const [found] = await query(server, `SELECT deadlocks FROM pg_stat_database WHERE datname = '${name}'`)
    await query(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
    if (Number(found?.deadlocks ?? 0) > 0 && !provokesDeadlocks) throw new Error('transactions deadlocked')
  })
  const url = new URL(server)
  url.pathname = name
  return url.href
}

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
