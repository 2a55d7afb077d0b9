/** Brings the schema of a database file up to date. If it is, as at most starts, migrations and the query builder are not loaded. */
import { isKnownSchema, type RecordedMigration, SELECT_RECORDED } from '../migrations/known-schema.ts'
import type { StoredFeature } from '../stored-feature.ts'
import { type Connection, openDatabase } from './database.ts'
import { assertOwnWal } from './database-file.ts'

const hasSchema = (db: Connection, features: readonly StoredFeature[]): boolean => {
  const isStamped = db.pragma('user_version', { simple: true }) !== 0
  return (
    isStamped && isKnownSchema('sqlite', db.prepare<[], RecordedMigration>(SELECT_RECORDED).all(), features)
  )
}

/** Takes no lock. What cannot be read counts as out of date, and the migrations report it. */
const isUpToDate = (file: string, features: readonly StoredFeature[]): boolean => {
  let db: Connection | undefined
  try {
    assertOwnWal(file)
    db = openDatabase(file, 0)
    return hasSchema(db, features)
  } catch {
    return false
  } finally {
    db?.close()
  }
}

/**
 * Creates a missing database, and migrates one of another version.
 * @throws {Error} that names the file.
 */
export const ensureSchema = async (file: string, features: readonly StoredFeature[]): Promise<void> => {
  if (isUpToDate(file, features)) return
  const { migrate } = await import('./migrate.ts')
  await migrate(file, features)
}
