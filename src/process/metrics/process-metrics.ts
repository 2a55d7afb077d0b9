/** Metrics of the process, with the names that Prometheus clients use. */
import { readdirSync } from 'node:fs'
import { getHeapStatistics } from 'node:v8'
import { type Sample, type Snapshot, sample } from '#base/statistics/snapshot'

/** Linux only. */
const openDescriptors = (): Sample[] => {
  try {
    return [sample(readdirSync('/proc/self/fd').length)]
  } catch {
    return []
  }
}

export const processMetrics = () => {
  const { user, system } = process.cpuUsage()
  return {
    process_cpu_seconds_total: [sample((user + system) / 1e6)],
    process_resident_memory_bytes: [sample(process.memoryUsage.rss())],
    process_start_time_seconds: [sample(performance.timeOrigin / 1_000)],
    process_open_fds: openDescriptors(),
  } satisfies Snapshot
}

/** Metrics of the process in a worker thread: none, because the primary has them. */
export const NO_PROCESS_METRICS: ReturnType<typeof processMetrics> = {
  process_cpu_seconds_total: [],
  process_resident_memory_bytes: [],
  process_start_time_seconds: [],
  process_open_fds: [],
}

export const heapMetrics = () => {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics()
  return {
    nodejs_heap_size_used_bytes: [sample(used)],
    nodejs_heap_size_limit_bytes: [sample(limit)],
  } satisfies Snapshot
}
