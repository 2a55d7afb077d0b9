/** Logs what the operator must know about invalidations: an unusable store, and an interrupted or late feed. */
import type { InvalidationListener } from '#storage/invalidation'

/** Milliseconds between two warnings about late notifications: under full load they are late again and again. */
const LATE_WARNING_INTERVAL = 60_000

export interface OperatorLog {
  /** Logs what the operator must fix. */
  error(message: string): void
  /** Logs what makes requests slower. */
  warn(message: string): void
  info(message: string): void
}

/**
 * Adds log messages to a listener: when the store cannot be used and when it can again, and when notifications are lost or late,
 * which makes every request slower.
 */
export const withInvalidationLog = (
  listener: InvalidationListener,
  log: OperatorLog,
  clock: () => number,
): InvalidationListener => {
  let hasWarned = false
  let lateWarningAt = Number.NEGATIVE_INFINITY
  return {
    invalidate: id => listener.invalidate(id),
    invalidateAll: () => listener.invalidateAll(),
    setFeedConnected(isConnected, message) {
      listener.setFeedConnected(isConnected)
      if (message !== undefined) log[isConnected ? 'info' : 'error'](message)
      else if (!isConnected && !hasWarned)
        log.warn(
          'changes on other instances are not received: nothing is cached, every request queries the store',
        )
      hasWarned = !isConnected
    },
    setFeedLate(isLate) {
      listener.setFeedLate(isLate)
      if (!isLate || clock() - lateWarningAt < LATE_WARNING_INTERVAL) return
      lateWarningAt = clock()
      log.warn(
        'changes on other instances are received late: the cache is bypassed, every request queries the store',
      )
    },
    leaseLapsed: id =>
      log.warn(`the process ${id} did not confirm a revocation: its lease has ended, and it uses no cache`),
    closed: () => listener.closed(),
  }
}
