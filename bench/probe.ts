/**
 * Preloaded into the service and its yardsticks alike (`--import`), changing neither: answers the bench's questions about
 * the whole process, all threads included, and ends the process with the bench, however that ends. Workers of the service
 * are preloaded with it too: the first process asks them.
 */
import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
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

const askWorker = async (worker: Worker | undefined, question: Question): Promise<number> => {
  if (worker === undefined) return 0
  const answer = once(worker, 'message')
  worker.send(question)
  const [value] = (await answer) as [number]
  return value
}

const ANSWERS: Record<Question, () => number | Promise<number>> = {
  /** Microseconds, user and system, the workers' included. */
  cpu: async () => {
    const workers = Object.values(cluster.workers ?? {})
    const ofWorkers = await Promise.all(workers.map(worker => askWorker(worker, 'cpu')))
    const { user, system } = process.cpuUsage()
    return ofWorkers.reduce((sum, cpu) => sum + cpu, user + system)
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

process.on('message', async (message: string) => {
  // What the first process tells its workers is no question.
  if (Object.hasOwn(ANSWERS, message)) process.send?.(await ANSWERS[message as Question]())
})
process.on('disconnect', () => process.exit())
// A channel that is only listened to keeps no process alive.
process.channel?.unref()
