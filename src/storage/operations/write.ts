/**
 * The result of a write, and the user whose cached state it makes stale. Every operation returns one, else it does not compile.
 * The engines evict the user from the cache of this process before the write is acknowledged. PostgreSQL notifies the other
 * instances in the same transaction; on SQLite, other processes detect the commit.
 */
export type Write<Result> = UserWrite<Result> | UncachedWrite<Result>

interface UserWrite<Result> {
  readonly result: Result
  /** The id of the user to evict in this process. */
  readonly evicts: string
  /** Whether the other instances evict the user too. */
  readonly notifies: boolean
}

/** A write that changed a user, or revoked one of the user's sessions. */
export const invalidates = <Result>(userId: string, result: Result): Write<Result> => ({
  result,
  evicts: userId,
  notifies: true,
})

/** A refused write: another process may have changed the user, and its notification may not have arrived here yet. */
export const refusedFor = <Result>(userId: string, result: Result): Write<Result> => ({
  result,
  evicts: userId,
  notifies: false,
})

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
