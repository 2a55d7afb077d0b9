/**
 * The result of a write, and the users and admin keys whose cached state it makes stale. Every operation returns one, else it does not compile.
 * The engines evict them from the caches of this process before the write is acknowledged. PostgreSQL notifies the other
 * instances in the same transaction; on SQLite, other processes detect the commit.
 */
export type Write<Result> = CachedWrite<Result> | UncachedWrite<Result>

interface CachedWrite<Result> {
  readonly result: Result
  /** The ids of the users and admin keys to evict in this process. */
  readonly evicts: readonly string[]
  /** Whether the other processes evict them too. */
  readonly notifies: boolean
  /** Whether the write is acknowledged only when no other process uses what it cached before. */
  readonly endsAccess: boolean
}

const listOf = (ids: string | readonly string[]): readonly string[] => (typeof ids === 'string' ? [ids] : ids)

/**
 * A write after which something cached is outdated, but nobody may do less: a new name, a new membership. Other processes follow within
 * milliseconds, a second at most.
 * @param ids of users, of admin keys, or of entities that a feature caches.
 */
export const invalidates = <Result>(ids: string | readonly string[], result: Result): Write<Result> => ({
  result,
  evicts: listOf(ids),
  notifies: true,
  endsAccess: false,
})

/**
 * A write after which somebody may do less: a revoked session or key, a disabled user, other roles, factors or memberships. It is
 * acknowledged when no process uses what it cached before: within milliseconds, or at most 550 ms if another process does not respond.
 * @param ids of users, of admin keys, or of entities that a feature caches.
 */
export const endsAccess = <Result>(ids: string | readonly string[], result: Result): Write<Result> => ({
  result,
  evicts: listOf(ids),
  notifies: true,
  endsAccess: true,
})

/**
 * A refused write: both engines roll back what it has written. Another process may have changed the user or admin key, and its
 * notification may not have arrived here yet.
 */
export const refusedFor = <Result>(id: string, result: Result): Write<Result> => ({
  result,
  evicts: [id],
  notifies: false,
  endsAccess: false,
})

/** Whether a write was refused: see {@link refusedFor}. */
export const isRefused = ({ evicts, notifies }: Write<unknown>): boolean => evicts !== null && !notifies

/** A write of rows that no cache holds: new users and sessions, hashes, events, e-mail tokens. */
export interface UncachedWrite<Result> {
  readonly result: Result
  readonly evicts: null
  readonly notifies: false
  readonly endsAccess: false
}

export const invalidatesNothing = <Result>(result: Result): UncachedWrite<Result> => ({
  result,
  evicts: null,
  notifies: false,
  endsAccess: false,
})
