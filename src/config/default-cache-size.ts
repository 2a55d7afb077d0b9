/** The number of tokens that each worker caches where `CACHE_SIZE` is not set. */
import { getHeapStatistics } from 'node:v8'
import { CACHED_TOKEN_SIZE } from '../auth/off-heap-token-cache.ts'
import { YOUNG_GENERATION } from '../auth/token-cache.ts'
import { availableMemory } from './default-workers.ts'

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
