/** Defaults that depend on the machine: the number of workers, and of tokens that each worker caches. */
import { availableParallelism, totalmem } from 'node:os'
import { getHeapStatistics } from 'node:v8'
import { CACHED_TOKEN_SIZE } from '#core/auth/off-heap-token-cache'
import { YOUNG_GENERATION } from '#core/auth/token-cache'

const MIB = 2 ** 20

/** Bytes of memory for each worker: more than one needs with a full cache, beside the first thread and the file cache. */
const WORKER_MEMORY = 768 * MIB

/** Each worker has a cache of its own, and one thread writes for all of them. */
const MAX_WORKERS = 4

/** Bytes that the container allows, or that the machine has. */
export const availableMemory = (): number => Math.min(process.constrainedMemory() || totalmem(), totalmem())

/** The number of workers with SQLite in production: one for each core for which there is memory, at most four. */
export const defaultWorkers = (
  cores = availableParallelism(),
  memory = availableMemory(),
  canSharePort = HAS_REUSE_PORT,
): number =>
  canSharePort ? Math.max(1, Math.min(cores, MAX_WORKERS, Math.floor(memory / WORKER_MEMORY))) : 1

export const HAS_REUSE_PORT = ['linux', 'freebsd'].includes(process.platform)

/** The share of the memory that the caches of all workers may take. */
const MEMORY_SHARE = 1 / 4

/** A lower heap limit lowers the default too: it is set for a process that is to remain small. */
const HEAP_SHARE = 1 / 2

const MIN_TOKENS = 1_000
const MAX_TOKENS = 1_000_000

/**
 * A million, or fewer with less than about 4 GB of memory for each worker, or 2 GB of heap limit.
 * @param memory bytes of the container or machine.
 * @param heapLimit bytes, the young generation included.
 */
export const defaultCacheSize = (
  workers: number,
  memory = availableMemory(),
  heapLimit = getHeapStatistics().heap_size_limit,
): number => {
  const room = Math.min((memory * MEMORY_SHARE) / workers, (heapLimit - YOUNG_GENERATION) * HEAP_SHARE)
  return Math.min(MAX_TOKENS, Math.max(MIN_TOKENS, Math.floor(room / CACHED_TOKEN_SIZE)))
}
