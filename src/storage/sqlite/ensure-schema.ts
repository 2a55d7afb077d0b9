/** Brings the schema of a database file up to date. If it is, as at most starts, migrations and the query builder are not loaded. */
import { isKnownSchema, type RecordedRow, SELECT_RECORDED } from '../migrations/known-schema.ts'
import type { StoredFeature } from '../stored-feature.ts'
import { type Connection, openDatabase } from './database.ts'
import { assertOwnWal } from './database-file.ts'

/** Takes no lock. @returns `null` for what cannot be read: the migrations report it. */
const readRecorded = (file: string): readonly RecordedRow[] | null => {
  let db: Connection | undefined
  try {
    assertOwnWal(file)
    db = openDatabase(file, 0)
    const isStamped = db.pragma('user_version', { simple: true }) !== 0
    return isStamped ? db.prepare<[], RecordedRow>(SELECT_RECORDED).all() : null
  } catch {
    return null
  } finally {
    db?.close()
  }
}

/**
 * Creates a missing database, and migrates one of another version.
 * @throws {Error} that names the file.
 */
export const ensureSchema = async (file: string, features: readonly StoredFeature[]): Promise<void> => {
  const recorded = readRecorded(file)
  if (recorded !== null && (await isKnownSchema('sqlite', recorded, features))) return
  const { migrate } = await import('./migrate.ts')
  await migrate(file, features)
}
