/** What commands that take a while have in common: lines of progress, and an end by signal. */
import { count, tell } from './output.ts'

/** Milliseconds between two lines of progress. */
const INTERVAL = 1_000

const throttled = () => {
  let last = 0
  return (line: string, always: boolean): void => {
    if (!always && Date.now() - last < INTERVAL) return
    last = Date.now()
    tell(line)
  }
}

export const progress = () => {
  const tellNow = throttled()
  return (done: number, total: number): void =>
    tellNow(`${done.toLocaleString('en')} of ${total.toLocaleString('en')} users`, done >= total)
}

/** Of lines, whose number shows when they end. */
export const lineProgress = () => {
  const tellNow = throttled()
  return (done: number): void => tellNow(count(done, 'line'), false)
}

/** A terminal's Ctrl-C arrives twice under npm, which passes it on: so the second one ends nothing either. */
export const stopSignal = (message = 'Stopping after the users that are being written'): AbortSignal => {
  const stop = new AbortController()
  const onSignal = (): void => {
    if (!stop.signal.aborted) tell(message)
    stop.abort()
  }
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal)
  return stop.signal
}

export const STOPPED = 'Stopped before the end: run it again, and it does what is missing'
