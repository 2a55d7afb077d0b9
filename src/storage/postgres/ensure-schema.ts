/** Brings the schema of a database up to date. If it is, as at most starts, no lock is taken. */
import { isUpToDate, SELECT_RECORDED } from '../migrations/run.ts'
import type { Schema } from '../migrations/schema.ts'
import type { RecordedRow } from '../migrations/session.ts'
import { Connection, migrationOptions } from './connection.ts'
import { isStatementError, reason } from './database.ts'
import { raiseEventShift } from './event-positions.ts'
import { migrate } from './migrate.ts'
import { PrimaryServer } from './primary-server.ts'
import {
  assertMayCreateTables,
  assertMayWriteTables,
  assertOwnServerProcess,
  assertUsable,
} from './requirements.ts'

const hasSchema = async (client: Connection, schema: Schema): Promise<boolean> => {
  try {
    const { rows } = await client.query<RecordedRow>(SELECT_RECORDED)
    return await isUpToDate('postgres', rows, schema)
  } catch (error) {
    // A table is missing. What else cannot be read, the migrations report.
    if (isStatementError(error)) return false
    throw error
  }
}

/** Runs `work` with a connection of its own. */
const connected = async <Result>(
  url: string,
  work: (client: Connection) => Promise<Result>,
): Promise<Result> => {
  const client = new Connection(migrationOptions(url))
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/**
 * Checks that a database can be used, migrates one of another version, and makes it ready for events.
 * @param url of one server.
 * @param connections of this process.
 * @throws {Error} of the connection, a requirement, a migration or a statement.
 */
const ensureSchema = async (url: string, schema: Schema, connections: number): Promise<void> => {
  const finish = async (client: Connection): Promise<void> => {
    await assertMayWriteTables(client, schema)
    await raiseEventShift(client)
  }
  const prepare = async (client: Connection): Promise<boolean> => {
    await assertUsable(client, connections)
    if (client.isPooled) await connected(url, other => assertOwnServerProcess(client, other))
    if (await hasSchema(client, schema)) {
      await finish(client)
      return true
    }
    await assertMayCreateTables(client)
    return false
  }
  if (await connected(url, prepare)) return
  await migrate(url, schema)
  await connected(url, finish)
}

/**
 * Finds the server to use and brings its schema up to date.
 * @param url may name several servers.
 * @param connections of this process; one more listens for changes.
 * @throws {Error} of the connection, a requirement or a migration.
 */
export const migratePrimary = async (
  url: string,
  schema: Schema,
  connections = 1,
): Promise<PrimaryServer> => {
  const primary = await PrimaryServer.open(url)
  await ensureSchema(primary.url, schema, connections)
  return primary
}

/** Finds the server to use and brings its schema up to date. @throws {Error} with a message for the operator. */
export const openPrimary = async (url: string, schema: Schema, connections = 1): Promise<PrimaryServer> => {
  try {
    return await migratePrimary(url, schema, connections)
  } catch (error) {
    const { code = 'DATABASE' } = error as { code?: unknown }
    throw Object.assign(new Error(`the database: ${reason(error)}`, { cause: error }), { code })
  }
}
