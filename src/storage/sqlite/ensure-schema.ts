/** Brings the schema of a database file up to date. Most starts find it so, and do not load the migrations and the query builder. */
import { MIGRATIONS, SQLITE_CHECKSUMS } from '../migrations/known-schema.ts'
import type { StoredFeature } from '../stored-feature.ts'
import { type Connection, openDatabase } from './database.ts'
import { assertOwnWal } from './database-file.ts'

interface Recorded {
  readonly feature: string
  readonly name: string
  readonly checksum: string
}

const hasSameKeys = (left: object, right: object): boolean =>
  Object.keys(left).sort().join() === Object.keys(right).sort().join()

/** Whether exactly the migrations of a built-in feature have run. Those of other features have no known checksums. */
const hasRun = ({ name, migrations = {} }: StoredFeature, rows: readonly Recorded[]): boolean => {
  const known = SQLITE_CHECKSUMS[name]
  if (known === undefined || !hasSameKeys(known, migrations)) return false
  const recorded = Object.fromEntries(
    rows.filter(row => row.feature === name).map(row => [row.name, row.checksum]),
  )
  return hasSameKeys(known, recorded) && Object.keys(known).every(key => known[key] === recorded[key])
}

const hasSchema = (db: Connection, features: readonly StoredFeature[]): boolean => {
  const names = db.prepare<[], string>('SELECT name FROM kysely_migration ORDER BY name').pluck().all()
  const rows = db.prepare<[], Recorded>('SELECT feature, name, checksum FROM feature_migrations').all()
  const isStamped = db.pragma('user_version', { simple: true }) !== 0
  return isStamped && names.join() === MIGRATIONS.join() && features.every(feature => hasRun(feature, rows))
}

/** Without a lock: whatever cannot be read is for the migrations to report. */
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
 * Creates the database when it is missing, and migrates it when it is of another version.
 * @throws {Error} that names the file.
 */
export const ensureSchema = async (file: string, features: readonly StoredFeature[]): Promise<void> => {
  if (isUpToDate(file, features)) return
  const { migrate } = await import('./migrate.ts')
  await migrate(file, features)
}
