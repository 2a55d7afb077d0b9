/** Migrates the schema of a PostgreSQL database. */
import type pg from 'pg'
import { prepareEvents } from '../migrations/partition-events.ts'
import { migrateSchema } from '../migrations/run.ts'
import type { Schema } from '../migrations/schema.ts'
import type { MigrationSession } from '../migrations/session.ts'
import { Connection, migrationOptions } from './connection.ts'

/** The keys of locks: that of Kysely's `Migrator`, with which releases up to 0.3 migrate, and theirs for features. */
const LOCKS = ['3853314791062309107', '7239180445']

export const postgresSession = (client: pg.ClientBase): MigrationSession => ({
  engine: 'postgres',
  // The result of several statements is a list, without rows.
  run: async (text, values) => (await client.query(text, values && [...values])).rows ?? [],
})

/**
 * Migrates the schema in one transaction under a lock of the database, so that instances that start at once do so one after the
 * other.
 * @param url of one server.
 * @throws {Error} of the connection or a migration.
 */
export const migrate = async (url: string, schema: Schema): Promise<void> => {
  const client = new Connection(migrationOptions(url))
  await client.connect()
  try {
    const session = postgresSession(client)
    await prepareEvents(session.run)
    await client.query('BEGIN')
    for (const lock of LOCKS) await client.query(`SELECT pg_advisory_xact_lock(${lock})`)
    await migrateSchema(session, schema)
    await client.query('COMMIT')
  } finally {
    await client.end()
  }
}
