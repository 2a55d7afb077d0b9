/**
 * The result of a write, and the user whose cached state it makes stale. Every SQLite write (`sqlite/operations.ts`) and every
 * PostgreSQL transaction (`transaction` in `postgres/database.ts`) returns one, else it does not compile. Single statements that
 * no cache holds use `writeUncached`. The drivers evict the user from the cache of this process before the write is
 * acknowledged. PostgreSQL notifies the other instances in the same transaction; on SQLite, other processes detect the commit.
 */
export type Write<Result> = { readonly result: Result } & Invalidation

/** The id of the user to evict here, or `null`, and whether the other instances evict the user too. */
type Invalidation =
  | { readonly evicts: string; readonly notifies: boolean }
  | { readonly evicts: null; readonly notifies: false }

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
export const invalidatesNothing = <Result>(result: Result): Write<Result> => ({
  result,
  evicts: null,
  notifies: false,
})
