/** What identifies a PostgreSQL server, and how much of the primary's log it has: whether a server is a replica of the primary. */
import type pg from 'pg'

interface Identity {
  /** Given to a cluster by `initdb`; its physical copies have the same. */
  readonly system: string
  /** The number of the database in its cluster. */
  readonly database: number
  /** Increases with every promotion. */
  readonly timeline: number
  /** Tells servers with the same history apart: seconds since the epoch with six decimals, as text. */
  readonly startedAt: string
}

export type PrimaryIdentity = Identity

export interface ReplicaState extends Identity {
  readonly isStandby: boolean
  /** How far the log is replayed, in bytes; `null` on a server that was never a standby. */
  readonly replayed: number | null
  /** The id of the server process that responded. */
  readonly pid: number
}

const COMMON_COLUMNS = `system_identifier::text AS system,
  (SELECT oid::bigint FROM pg_database WHERE datname = current_database()) AS database,
  extract(epoch FROM pg_postmaster_start_time())::text AS "startedAt"`

/** How far the primary's log is on disk, in bytes: every acknowledged commit is before it. */
export const FLUSHED = `pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint AS flushed`

const SELECT_PRIMARY = `SELECT ${COMMON_COLUMNS},
  ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer AS timeline
  FROM pg_control_system(), (SELECT ${FLUSHED}) AS log`

/** @throws {Error} of the connection, or if this role may not read it. */
export const readPrimaryIdentity = async (client: pg.ClientBase): Promise<PrimaryIdentity> => {
  const { rows } = await client.query<PrimaryIdentity>(SELECT_PRIMARY)
  return rows[0] as PrimaryIdentity
}

/**
 * The timeline of a standby is the one in its control file, which it may write minutes after it has followed a promotion. Until then
 * the primary serves. The file never names a timeline that the standby is not on.
 */
export const SELECT_REPLICA = {
  name: 'replica',
  text: `SELECT ${COMMON_COLUMNS}, pg_is_in_recovery() AS "isStandby", pg_backend_pid() AS pid,
    pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint AS replayed,
    greatest(timeline_id, min_recovery_end_timeline) AS timeline
    FROM pg_control_system(), pg_control_checkpoint(), pg_control_recovery()`,
  values: [],
}

/** @returns why a server must not serve reads of this primary's data; `null` if it may. */
export const objectionTo = (server: ReplicaState, primary: PrimaryIdentity): string | null => {
  if (server.system !== primary.system)
    return `it is another database cluster: its system identifier is ${server.system}, the primary's ${primary.system}`
  if (server.database !== primary.database) return 'it is another database of the same cluster'
  if (!server.isStandby)
    return server.startedAt === primary.startedAt
      ? null
      : 'it takes writes itself: it was promoted, or is a former primary'
  if (server.timeline === primary.timeline) return null
  return `it is on timeline ${server.timeline}, the primary on ${primary.timeline}: it has not followed a promotion, or not finished a restartpoint since`
}
