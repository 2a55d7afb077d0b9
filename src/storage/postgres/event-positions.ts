/**
 * Positions in the audit log, which are numbers of transactions (`0003-event-positions.ts`). A dump that is restored into
 * another server, or a logical copy, brings its positions along, while that server's transactions may have lower numbers: new
 * events would be read before old ones, or not at all. So a store that is opened raises what is added to them.
 */
import { type Kysely, sql } from 'kysely'

/** What is visible has ended, so its number is below this one, unless it comes from elsewhere. */
const NEXT = sql`pg_snapshot_xmax(pg_current_snapshot())::text::bigint + event_shift()`

const areAhead = async (db: Kysely<unknown>): Promise<boolean> => {
  const { rows } = await sql<{ ahead: boolean | null }>`
    SELECT (SELECT max(position) FROM events) >= ${NEXT} AS ahead`.execute(db)
  return rows[0]?.ahead === true
}

/** @throws what PostgreSQL failed with. */
export const raisePositions = async (db: Kysely<unknown>): Promise<void> => {
  if (!(await areAhead(db))) return
  await db.transaction().execute(async transaction => {
    // Nobody is writing events now, and whoever does so next sees the function as it will be.
    await sql`LOCK TABLE events IN ACCESS EXCLUSIVE MODE`.execute(transaction)
    if (!(await areAhead(transaction))) return
    const { rows } = await sql<{ shift: number }>`
      SELECT max(position) + 1 - pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS shift
      FROM events`.execute(transaction)
    const body = `SELECT ${rows[0]?.shift}::bigint`
    await sql`CREATE OR REPLACE FUNCTION event_shift() RETURNS bigint LANGUAGE sql IMMUTABLE AS ${sql.lit(body)}`.execute(
      transaction,
    )
  })
}
