import type { ChangeListener } from './auth/change-listener.ts'

/** Milliseconds in which changes that come late are told of once: under full load they are late again and again. */
const QUIET = 60_000

/** The same listener, whose operator is told when changes are not heard of, or not in time: every request is slower then. */
export const withWarnings = (
  listener: ChangeListener,
  warn: (message: string) => void,
  clock: () => number,
): ChangeListener => {
  let isTold = false
  let toldOfLate = Number.NEGATIVE_INFINITY
  return {
    userChanged: id => listener.userChanged(id),
    anyoneChanged: () => listener.anyoneChanged(),
    listening(isListening) {
      listener.listening(isListening)
      if (!isListening && !isTold) warn('changes made elsewhere are not heard of: nothing is remembered')
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
