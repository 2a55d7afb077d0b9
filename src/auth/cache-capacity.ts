/** How much the caches of tokens may hold, so that a small heap does not end the process. */
import { getHeapStatistics } from 'node:v8'

const MIB = 2 ** 20

/** V8 counts its young generation in: three semi-spaces of 64 MiB. Whatever outlives two collections is not in it. */
const YOUNG_GENERATION = 192 * MIB

/** What the service needs without any cache, and while it collects garbage. */
const SERVICE = 48 * MIB

/** The part of the rest that remembered tokens may take; requests and last requests that are not written yet need the other. */
const SHARE = 1 / 2

/** Bytes of a remembered token with its session and its user (`npm run bench -- memory`). */
const TOKEN = 1_300

const MIN_TOKENS = 1_000
const MAX_TOKENS = 100_000

/**
 * The number of tokens to remember: 100,000, and less where the heap is limited to less than about 300 MiB
 * (`--max-old-space-size`, or a container's memory, from which Node takes its limit).
 * @param heapLimit bytes.
 */
export const tokenCapacity = (heapLimit = getHeapStatistics().heap_size_limit): number => {
  const room = (heapLimit - YOUNG_GENERATION - SERVICE) * SHARE
  return Math.min(MAX_TOKENS, Math.max(MIN_TOKENS, Math.floor(room / TOKEN)))
}
