/**
 * Positions in the audit log are transaction numbers (`0003-event-positions.ts`). A dump that is restored into another server, or
 * a logical copy, keeps its positions, but that server's transaction numbers may be lower. New events would then be read before
 * old ones, or not at all. Opening a store therefore raises the shift that is added to transaction numbers.
 */
import { type Kysely, sql } from 'kysely'

/** Above the position of every event of this server: visible transactions have ended, so their numbers are lower. */
const NEXT_POSITION = sql`pg_snapshot_xmax(pg_current_snapshot())::text::bigint + event_shift()`

const isShiftTooLow = async (db: Kysely<unknown>): Promise<boolean> => {
  const { rows } = await sql<{ too_low: boolean | null }>`
    SELECT (SELECT max(position) FROM events) >= ${NEXT_POSITION} AS too_low`.execute(db)
  return rows[0]?.too_low === true
}

/** @throws {Error} of the connection or a statement. */
export const raiseEventShift = async (db: Kysely<unknown>): Promise<void> => {
  if (!(await isShiftTooLow(db))) return
  await db.transaction().execute(async transaction => {
    // No event is being written now, and the next writer uses the new function.
    await sql`LOCK TABLE events IN ACCESS EXCLUSIVE MODE`.execute(transaction)
    if (!(await isShiftTooLow(transaction))) return
    const { rows } = await sql<{ shift: number }>`
      SELECT max(position) + 1 - pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS shift
      FROM events`.execute(transaction)
    const body = `SELECT ${rows[0]?.shift}::bigint`
    await sql`CREATE OR REPLACE FUNCTION event_shift() RETURNS bigint LANGUAGE sql IMMUTABLE AS ${sql.lit(body)}`.execute(
      transaction,
    )
  })
}
