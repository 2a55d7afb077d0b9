/** Brings the schema of a database file up to date. If it is, as at most starts, no lock is taken. */
import { isUpToDate, SELECT_RECORDED } from '../migrations/run.ts'
import type { Schema } from '../migrations/schema.ts'
import type { RecordedRow } from '../migrations/session.ts'
import { type Connection, openDatabase } from './database.ts'
import { assertOwnWal } from './database-file.ts'
import { migrate } from './migrate.ts'

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
export const ensureSchema = async (file: string, schema: Schema): Promise<void> => {
  const recorded = readRecorded(file)
  if (recorded !== null && (await isUpToDate('sqlite', recorded, schema))) return
  await migrate(file, schema)
}
