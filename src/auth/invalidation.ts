/** Who remembers what the store said, and so has to hear of what changes. */
export interface InvalidationListener {
  /**
   * A user was changed, or lost a session; told before the change is acknowledged where it was made through this store.
   * A new user or session changes nothing that anybody remembers.
   */
  userChanged(id: string): void
  /** Somebody else changed something unknown. */
  anyoneChanged(): void
  /**
   * Whether changes that others make are heard of from now on. While they are not, nothing may be remembered.
   * @param problem where the store itself is out of use: what the operator has to know and do.
   */
  listening(isListening: boolean, problem?: string): void
  /**
   * Whether they are heard of, but perhaps too late. Then nothing that is remembered may be relied on; all of it is good again
   * afterwards, as none was missed.
   */
  late(isLate: boolean): void
}

/** Milliseconds in which changes that come late are told of once: under full load they are late again and again. */
const QUIET = 60_000

export interface Tell {
  /** What the operator has to fix. */
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
