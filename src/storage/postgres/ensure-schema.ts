/** Brings the schema of a database up to date. If it is, as at most starts, migrations and the query builder are not loaded. */
import pg from 'pg'
import { isKnownSchema, type RecordedRow, SELECT_RECORDED } from '../migrations/known-schema.ts'
import type { StoredFeature } from '../stored-feature.ts'
import { ignore, isStatementError, migrationOptions, reason } from './database.ts'
import { raiseEventShift } from './event-positions.ts'
import { PrimaryServer } from './primary-server.ts'

const hasSchema = async (client: pg.Client, features: readonly StoredFeature[]): Promise<boolean> => {
  try {
    const { rows } = await client.query<RecordedRow>(SELECT_RECORDED)
    return await isKnownSchema('postgres', rows, features)
  } catch (error) {
    // A table is missing. What else cannot be read, the migrations report.
    if (isStatementError(error)) return false
    throw error
  }
}

/** Runs `work` with a connection of its own. */
const connected = async <Result>(
  url: string,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> => {
  const client = new pg.Client(migrationOptions(url))
  // The statement on a broken connection rejects.
  client.on('error', ignore)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/**
 * Migrates a database of another version, and makes it ready for events.
 * @param url of one server.
 * @throws {Error} of the connection, a migration or a statement.
 */
const ensureSchema = async (url: string, features: readonly StoredFeature[]): Promise<void> => {
  const prepare = async (client: pg.Client): Promise<boolean> => {
    if (!(await hasSchema(client, features))) return false
    await raiseEventShift(client)
    return true
  }
  if (await connected(url, prepare)) return
  const { migrate } = await import('./migrate.ts')
  await migrate(url, features)
  await connected(url, raiseEventShift)
}

/**
 * Finds the server to use and brings its schema up to date.
 * @param url may name several servers.
 * @throws {Error} of the connection or a migration.
 */
export const migratePrimary = async (
  url: string,
  features: readonly StoredFeature[] = [],
): Promise<PrimaryServer> => {
  const primary = await PrimaryServer.open(url)
  await ensureSchema(primary.url, features)
  return primary
}

/** As {@link migratePrimary}. @throws {Error} with a message for the operator. */
export const openPrimary = async (
  url: string,
  features: readonly StoredFeature[] = [],
): Promise<PrimaryServer> => {
  try {
    return await migratePrimary(url, features)
  } catch (error) {
    const { code = 'DATABASE' } = error as { code?: unknown }
    throw Object.assign(new Error(`the database: ${reason(error)}`, { cause: error }), { code })
  }
}
