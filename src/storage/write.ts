/**
 * The return value of every SQLite write and every PostgreSQL transaction: its result, and the user whose cached state it makes
 * stale. The drivers accept nothing else (`sqlite/writer.ts`, `postgres/database.ts`), so a write that does not state it does not
 * compile. They evict the user from the cache of this process before the write is acknowledged. PostgreSQL notifies the other
 * instances in the same transaction. Single statements whose rows no cache holds use `Database.writeUncached`.
 */
export interface Write<Result> {
  readonly result: Result
  /** The id of the user: evicted here, and notified to the other instances. `null` if no cache holds what was written. */
  readonly invalidates: string | null
  /** The id of the user of a refused write: evicted here, not notified. */
  readonly evicts?: string
}

/** A write that changed a user, or ended one of the user's sessions. */
export const invalidates = <Result>(userId: string, result: Result): Write<Result> => ({
  result,
  invalidates: userId,
})

/** A write of rows that no cache holds: new users and sessions, hashes, events, e-mail tokens. */
export const invalidatesNothing = <Result>(result: Result): Write<Result> => ({ result, invalidates: null })

/** A refused write: another process may have changed the user, and its notification may not have arrived here yet. */
export const refusedFor = <Result>(userId: string, result: Result): Write<Result> => ({
  result,
  invalidates: null,
  evicts: userId,
})
