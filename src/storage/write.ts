/**
 * The result of a write, and the user whose cached state it makes stale. Every SQLite write (`sqlite/operations.ts`) and every
 * PostgreSQL transaction (`transaction` in `postgres/database.ts`) returns one, else it does not compile. Single statements that
 * no cache holds use `writeUncached`. The drivers evict the user from the cache of this process before the write is
 * acknowledged. PostgreSQL notifies the other instances in the same transaction; on SQLite, other processes detect the commit.
 */
export interface Write<Result> {
  readonly result: Result
  /** The id of the user; `null` if no cache holds what was written. */
  readonly invalidates: string | null
}

/** A write that changed a user, or ended one of the user's sessions. */
export const invalidates = <Result>(userId: string, result: Result): Write<Result> => ({
  result,
  invalidates: userId,
})

/** A write of rows that no cache holds (new users and sessions, hashes, events, e-mail tokens), or a refused write. */
export const invalidatesNothing = <Result>(result: Result): Write<Result> => ({ result, invalidates: null })
