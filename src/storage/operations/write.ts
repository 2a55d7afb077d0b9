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
  /** Whether the other instances evict them too. */
  readonly notifies: boolean
}

/**
 * A write that changed a user, revoked one of the user's sessions or API keys, or revoked an admin key.
 * @param ids of the user or of the admin key, or of several.
 */
export const invalidates = <Result>(ids: string | readonly string[], result: Result): Write<Result> => ({
  result,
  evicts: typeof ids === 'string' ? [ids] : ids,
  notifies: true,
})

/**
 * A refused write: both engines roll back what it has written. Another process may have changed the user or admin key, and its
 * notification may not have arrived here yet.
 */
export const refusedFor = <Result>(id: string, result: Result): Write<Result> => ({
  result,
  evicts: [id],
  notifies: false,
})

/** Whether a write was refused: see {@link refusedFor}. */
export const isRefused = ({ evicts, notifies }: Write<unknown>): boolean => evicts !== null && !notifies

/** A write of rows that no cache holds: new users and sessions, hashes, events, e-mail tokens. */
export interface UncachedWrite<Result> {
  readonly result: Result
  readonly evicts: null
  readonly notifies: false
}

export const invalidatesNothing = <Result>(result: Result): UncachedWrite<Result> => ({
  result,
  evicts: null,
  notifies: false,
})
