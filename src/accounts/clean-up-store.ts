/** The store of clean-up: it removes expired rows. */

/** Timestamps in milliseconds since the epoch. */
export interface ExpiredSessions {
  /** Removes sessions whose absolute end is at or before this time. */
  readonly endedBy: number
  /** Removes sessions whose last request is at or before this time. */
  readonly idleSince: number
}

/** Each call removes one slice of at most `limit` rows. Simultaneous calls, also of several instances, are safe. */
export interface CleanUpStore {
  /**
   * Reads the next sessions in the order of their ids: an index of their ends would cost every request. Sessions that are
   * being written are skipped until the next pass.
   * @param after the last id of the previous slice, `''` at the beginning.
   * @returns the last id of this slice, `''` after the last session.
   */
  removeSessions(expired: ExpiredSessions, after: string, limit: number): Promise<string>
  /** Removes rows whose value in `column` is before this one. @returns whether there may be more. */
  removeOldRows(
    table: { readonly name: string; readonly key: string },
    column: string,
    before: number | string,
    limit: number,
  ): Promise<boolean>
  /** Like {@link removeSessions}, for the counters of rate limits. Does nothing where they are not in a table. */
  removeRateLimits(expiredBy: number, after: string, limit: number): Promise<string>
}
