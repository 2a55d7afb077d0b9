/** Gives memory that the start or a busy time needed back to the system. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Milliseconds between two collections. */
const INTERVAL = 10_000

/** Node has no other way to collect the young generation alone. */
const collector = (): (() => void) => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (options: { type: 'minor' }) => void
  return () => collect({ type: 'minor' })
}

/**
 * Collects the young generation of this thread every ten seconds, which takes about a millisecond. V8 shrinks its heap while little is
 * allocated, but measures that only when it collects, and the heap of an idle process takes hours to fill: without this, 40 MB that
 * the start has used stay in memory, and 4 MB in SQLite's writer thread.
 * @param interval milliseconds.
 */
export const releaseIdleMemory = (interval = INTERVAL): void => {
  setInterval(collector(), interval).unref()
}
