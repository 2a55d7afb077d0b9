/** The interface of caches to the store's invalidations. Every cache of what the store contains must implement it. */
export interface InvalidationListener {
  /**
   * Evicts a user who was changed or lost a session. Called before the change is acknowledged if it was made through this store.
   * Not called for new users and sessions, as no cache holds them.
   */
  invalidateUser(id: string): void
  /** Evicts every user, because another process has made unknown changes. */
  invalidateAll(): void
  /**
   * Whether changes by other processes are notified from now on. While they are not, nothing may be cached.
   * @param problem if the store cannot be used: what the operator must know and do.
   */
  setFeedConnected(isConnected: boolean, problem?: string): void
  /**
   * Whether notifications may arrive too late. While they do, the cache must be bypassed. Afterwards all of it is valid again,
   * as no notification was missed.
   */
  setFeedLate(isLate: boolean): void
  /** The store is closed: nothing is notified from now on, and nothing may be cached. */
  closed(): void
}

/** Milliseconds between two warnings about late notifications: under full load they are late again and again. */
const LATE_WARNING_INTERVAL = 60_000

export interface OperatorLog {
  /** For what the operator must fix. */
  readonly error: (message: string) => void
  /** For what makes requests slower. */
  readonly warn: (message: string) => void
  readonly info: (message: string) => void
}

/**
 * The same listener with log messages for the operator: when the store cannot be used, and when notifications are lost or late,
 * which makes every request slower.
 */
export const withWarnings = (
  listener: InvalidationListener,
  { error, warn, info }: OperatorLog,
  clock: () => number,
): InvalidationListener => {
  let hasWarned = false
  let hadProblem = false
  let lateWarningAt = Number.NEGATIVE_INFINITY
  return {
    invalidateUser: id => listener.invalidateUser(id),
    invalidateAll: () => listener.invalidateAll(),
    setFeedConnected(isConnected, problem) {
      listener.setFeedConnected(isConnected)
      if (problem !== undefined) error(problem)
      else if (hadProblem && isConnected) info('the database file is in place again: the service continues')
      else if (!isConnected && !hasWarned)
        warn(
          'changes on other instances are not received: nothing is cached, every request queries the store',
        )
      hadProblem = problem !== undefined
      hasWarned = !isConnected
    },
    setFeedLate(isLate) {
      listener.setFeedLate(isLate)
      if (!isLate || clock() - lateWarningAt < LATE_WARNING_INTERVAL) return
      lateWarningAt = clock()
      warn(
        'changes on other instances are received late: the cache is bypassed, every request queries the store',
      )
    },
    closed: () => listener.closed(),
  }
}
