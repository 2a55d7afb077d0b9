/** The replica of PostgreSQL that lists are read from, see `postgres/replica.ts`. */

export interface ReplicaLog {
  error(message: string): void
  warn(message: string): void
  info(message: string): void
}

export interface ReplicaOptions {
  /** May name several servers, which are tried in turn. */
  readonly url: string
  /** Milliseconds by which a read may be behind acknowledged writes. */
  readonly maxLag: number
  readonly log: ReplicaLog
}
