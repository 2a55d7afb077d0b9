/** Notified of changes in the store. Every cache of what the store contains must implement it. */
export interface InvalidationListener {
  /**
   * A user was changed or lost a session. Called before the change is acknowledged if it was made through this store. New
   * users and sessions are not notified, as no cache holds them.
   */
  userChanged(id: string): void
  /** Another process changed something, and it is unknown what. */
  anyoneChanged(): void
  /**
   * Whether changes elsewhere are notified from now on. While they are not, nothing may be cached.
   * @param problem where the store cannot be used: what the operator must know and do.
   */
  listening(isListening: boolean, problem?: string): void
  /**
   * Whether notifications may arrive too late. While they do, the cache must be bypassed. Afterwards all of it is valid again,
   * as no notification was missed.
   */
  late(isLate: boolean): void
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
  log: OperatorLog,
  clock: () => number,
): InvalidationListener => {
  let hasWarned = false
  let hadProblem = false
  let lateWarningAt = Number.NEGATIVE_INFINITY
  return {
    userChanged: id => listener.userChanged(id),
    anyoneChanged: () => listener.anyoneChanged(),
    listening(isListening, problem) {
      listener.listening(isListening)
      if (problem !== undefined) log.error(problem)
      else if (hadProblem && isListening)
        log.info('the database file is in place again: the service continues')
      else if (!isListening && !hasWarned)
        log.warn(
          'changes on other instances are not received: nothing is cached, every request queries the store',
        )
      hadProblem = problem !== undefined
      hasWarned = !isListening
    },
    late(isLate) {
      listener.late(isLate)
      if (!isLate || clock() - lateWarningAt < LATE_WARNING_INTERVAL) return
      lateWarningAt = clock()
      log.warn(
        'changes on other instances are received late: the cache is bypassed, every request queries the store',
      )
    },
    closed: () => listener.closed(),
  }
}
