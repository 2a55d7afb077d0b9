import type { InvalidationListener } from './invalidation-listener.ts'

/** Milliseconds in which changes that come late are told of once: under full load they are late again and again. */
const QUIET = 60_000

export interface Tell {
  /** What the operator has to mend. */
  readonly error: (message: string) => void
  /** What costs speed. */
  readonly warn: (message: string) => void
  readonly info: (message: string) => void
}

/**
 * The same listener, whose operator is told when the store is out of use, and when changes are not heard of, or not in time:
 * every request is slower then.
 */
export const withWarnings = (
  listener: InvalidationListener,
  { error, warn, info }: Tell,
  clock: () => number,
): InvalidationListener => {
  let isTold = false
  let isOutOfUse = false
  let toldOfLate = Number.NEGATIVE_INFINITY
  return {
    userChanged: id => listener.userChanged(id),
    anyoneChanged: () => listener.anyoneChanged(),
    listening(isListening, problem) {
      listener.listening(isListening)
      if (problem !== undefined) error(problem)
      else if (isOutOfUse && isListening) info('the database file is in its place again: the service goes on')
      else if (!isListening && !isTold) warn('changes made elsewhere are not heard of: nothing is remembered')
      isOutOfUse = problem !== undefined
      isTold = !isListening
    },
    late(isLate) {
      listener.late(isLate)
      if (!isLate || clock() - toldOfLate < QUIET) return
      toldOfLate = clock()
      warn('changes made elsewhere are heard of late: the store is asked with every request meanwhile')
    },
  }
}
