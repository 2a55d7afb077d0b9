/**
 * What every write returns: its result, and whose cached state it makes stale. The drivers accept nothing else
 * (`sqlite/writer.ts`, `postgres/database.ts`), so a write that does not state it does not compile. They evict the user from
 * the cache of this process before the write is acknowledged, and notify the others in the same transaction.
 */
export interface Write<Result> {
  readonly result: Result
  /** The id of the user; `null` when no cache holds what was written. */
  readonly invalidates: string | null
}

/** A write that changed a user, or ended a session of theirs. */
export const invalidates = <Result>(userId: string, result: Result): Write<Result> => ({
  result,
  invalidates: userId,
})

/** A write of rows that no cache holds: new users and sessions, hashes, events, e-mail tokens; or a refused write. */
export const invalidatesNothing = <Result>(result: Result): Write<Result> => ({ result, invalidates: null })
