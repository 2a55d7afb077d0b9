/** Brings a schema up to date. The caller provides a transaction under a lock, so that instances that start at once do so one after the other. */
import { migratedFeatures, migrateFeatures } from './feature-migrations.ts'
import type { CoreMigration, Schema } from './schema.ts'
import type { Engine, MigrationSession, RecordedRow } from './session.ts'

/** Selects every {@link RecordedRow}. Fails on a database without migrations, and on one of 0.2.0. */
export const SELECT_RECORDED = `SELECT NULL AS feature, name, NULL AS checksum FROM kysely_migration
  UNION ALL SELECT feature, name, checksum FROM feature_migrations
  UNION ALL SELECT feature, NULL, fingerprint FROM migrated_features`

/** Whether a database has exactly the schema of this version and these features. @param rows see {@link SELECT_RECORDED}. */
export const isUpToDate = async (
  engine: Engine,
  rows: readonly RecordedRow[],
  { migrations, features }: Schema,
): Promise<boolean> => {
  const names = rows.flatMap(({ feature, name }) => (feature === null ? [name] : []))
  const expected = [...migrations(engine).keys()]
  return names.sort().join() === expected.join() && (await migratedFeatures(engine, rows, features))
}

/**
 * Runs the migrations of the core that are not recorded. The table is that of Kysely's `Migrator`, which ran them in earlier releases.
 * @throws {Error} for a database of a later version.
 */
export const migrateCore = async (
  { run }: MigrationSession,
  migrations: ReadonlyMap<string, CoreMigration>,
): Promise<void> => {
  await run(`CREATE TABLE IF NOT EXISTS kysely_migration
    (name varchar(255) NOT NULL PRIMARY KEY, timestamp varchar(255) NOT NULL)`)
  const rows = await run<{ name: string }>('SELECT name FROM kysely_migration', [])
  const recorded = new Set(rows.map(({ name }) => name))
  for (const name of recorded)
    if (!migrations.has(name))
      throw new Error(
        `The migration ${name} has run on this database, but this version does not have it: start the version that ran it, or a later one`,
      )
  for (const [name, migration] of migrations) {
    if (recorded.has(name)) continue
    await (typeof migration === 'string' ? run(migration) : migration(run))
    await run(`INSERT INTO kysely_migration VALUES ('${name}', '${new Date().toISOString()}')`)
  }
}

/** @throws {Error} of a statement, or for a database of a later version. @throws {FeatureError} */
export const migrateSchema = async (
  session: MigrationSession,
  { migrations, features }: Schema,
): Promise<void> => {
  await migrateCore(session, migrations(session.engine))
  await migrateFeatures(session, features)
}
