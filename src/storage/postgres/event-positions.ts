/**
 * Positions in the audit log are transaction numbers (migration `0003_event_positions`). A dump that is restored into another server, or
 * a logical copy, keeps its positions, but that server's transaction numbers may be lower. New events would then be read before
 * old ones, or not at all. Opening a store therefore raises the shift that is added to transaction numbers.
 */
import type pg from 'pg'

/** Above the position of every event of this server: visible transactions have ended, so their numbers are lower. */
export const NEXT_POSITION = 'pg_snapshot_xmax(pg_current_snapshot())::text::bigint + event_shift()'

/** The last position that new events must follow. @param floor another one. */
const lastPosition = (floor: number): string => `greatest((SELECT max(position) FROM events), ${floor})`

const isShiftTooLow = async (client: pg.ClientBase, floor: number): Promise<boolean> => {
  const { rows } = await client.query<{ too_low: boolean }>(
    `SELECT ${lastPosition(floor)} >= ${NEXT_POSITION} AS too_low`,
  )
  return rows[0]?.too_low === true
}

/**
 * @param floor new events get later positions than this one.
 * @throws {Error} of the connection or a statement, after which the connection may have an open transaction.
 */
export const raiseEventShift = async (client: pg.ClientBase, floor = 0): Promise<void> => {
  if (!(await isShiftTooLow(client, floor))) return
  // No event is being written then, and the next writer uses the new function.
  await client.query('BEGIN; LOCK TABLE events IN ACCESS EXCLUSIVE MODE')
  if (await isShiftTooLow(client, floor)) {
    const { rows } = await client.query<{ shift: number }>(
      `SELECT ${lastPosition(floor)} + 1 - pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS shift`,
    )
    await client.query(
      `CREATE OR REPLACE FUNCTION event_shift() RETURNS bigint LANGUAGE sql IMMUTABLE
       AS 'SELECT ${rows[0]?.shift}::bigint'`,
    )
  }
  await client.query('COMMIT')
}
