/** What nobody can use any more, and how a store lets go of it: a slice at a time, so that no other write waits for long. */

/** Timestamps in milliseconds since the epoch. */
export interface ExpiredSessions {
  /** Gone is what had its absolute end by then, */
  readonly endedBy: number
  /** and what the store has no request of since. */
  readonly idleSince: number
}

/** Each call is one slice and removes `limit` rows at most. Several callers at once, of any instance, do each other no harm. */
export interface CleanUpStore {
  /**
   * Looks at the next sessions in the order of their ids: no index leads to their ends, which every request would pay for.
   * A session that somebody is just writing is left for another time.
   * @param after where to go on, `''` at the beginning.
   * @returns where to go on, `''` after the last.
   */
  removeSessions(expired: ExpiredSessions, after: string, limit: number): Promise<string>
  /** @param before tokens made at this timestamp and later stay, whatever their end. @returns whether there may be more. */
  removeEmailTokens(before: number, limit: number): Promise<boolean>
  /** @param before events of this timestamp and later stay. @returns whether there may be more. */
  removeEvents(before: number, limit: number): Promise<boolean>
  /** Like {@link removeSessions}, over what is counted for rate limits; nothing where no table has it. */
  removeRateLimits(expiredBy: number, after: string, limit: number): Promise<string>
}
