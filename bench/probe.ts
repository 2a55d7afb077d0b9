/**
 * Preloaded into the service and the baselines (`--import`). Reports the resources of the whole process with all threads to the
 * bench, and ends the process with the bench. Workers of the service preload it too, and the primary queries them.
 */
import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

export type Question = 'cpu' | 'rss' | 'heap' | 'buffers' | 'watchDelay' | 'delay' | 'watchPauses' | 'pause'

const delay = monitorEventLoopDelay({ resolution: 1 })

/** Milliseconds of the longest pause by garbage collection since `watchPauses`. */
let longestPause = 0

const pauses = new PerformanceObserver(list => {
  for (const { duration } of list.getEntries()) longestPause = Math.max(longestPause, duration)
})

/** Bytes of the main thread's heap and of its external memory, after garbage collection. */
const heapInUse = (): number => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

const askWorker = async (worker: Worker | undefined, question: Question): Promise<number> => {
  if (worker === undefined) return 0
  const reply = once(worker, 'message')
  worker.send(question)
  const [value] = (await reply) as [number]
  return value
}

const REPORTS: Record<Question, () => number | Promise<number>> = {
  /** Microseconds, user and system, including workers. */
  cpu: async () => {
    const workers = Object.values(cluster.workers ?? {})
    const ofWorkers = await Promise.all(workers.map(worker => askWorker(worker, 'cpu')))
    const { user, system } = process.cpuUsage()
    return ofWorkers.reduce((sum, cpu) => sum + cpu, user + system)
  },
  rss: () => process.memoryUsage.rss(),
  heap: heapInUse,
  /** Bytes of the main thread's buffers, which are a part of its external memory. */
  buffers: () => process.memoryUsage().arrayBuffers,
  watchPauses: () => {
    longestPause = 0
    pauses.observe({ entryTypes: ['gc'] })
    return 0
  },
  pause: () => {
    pauses.disconnect()
    return longestPause
  },
  watchDelay: () => {
    delay.enable()
    delay.reset()
    return 0
  },
  /** The 99th percentile since `watchDelay`, in milliseconds, without the sampling interval of 1 ms. */
  delay: () => {
    delay.disable()
    return Math.max(0, delay.percentile(99) / 1e6 - 1)
  },
}

process.on('message', async (message: string) => {
  // The primary sends its workers other messages too.
  if (Object.hasOwn(REPORTS, message)) process.send?.(await REPORTS[message as Question]())
})
process.on('disconnect', () => process.exit())
// The channel must not keep the process alive.
process.channel?.unref()
