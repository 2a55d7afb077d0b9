/**
 * Preloaded into the service and its yardsticks alike (`--import`), changing neither: answers the bench's questions about
 * the whole process, all threads included, and ends the process with the bench, however that ends.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

export type Question = 'cpu' | 'rss' | 'heap' | 'watchDelay' | 'delay'

const delay = monitorEventLoopDelay({ resolution: 1 })

/** Bytes of the main thread's heap and of the memory outside that it holds, once what nobody needs is collected. */
const heapInUse = (): number => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

const ANSWERS: Record<Question, () => number> = {
  /** Microseconds, user and system. */
  cpu: () => {
    const { user, system } = process.cpuUsage()
    return user + system
  },
  rss: () => process.memoryUsage.rss(),
  heap: heapInUse,
  watchDelay: () => {
    delay.enable()
    delay.reset()
    return 0
  },
  /** Milliseconds beyond the millisecond between two looks, the 99th percentile since `watchDelay`. */
  delay: () => {
    delay.disable()
    return Math.max(0, delay.percentile(99) / 1e6 - 1)
  },
}

process.on('message', (question: Question) => process.send?.(ANSWERS[question]()))
process.on('disconnect', () => process.exit())
// A channel that is only listened to keeps no process alive.
process.channel?.unref()
