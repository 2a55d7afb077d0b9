/** The number of workers where `WORKERS` is not set. */
import { availableParallelism, totalmem } from 'node:os'
import { HAS_REUSE_PORT } from './reuse-port.ts'

const MIB = 2 ** 20

/** Bytes of memory for each worker: more than one needs with a full cache, beside the first thread and the file cache. */
const WORKER_MEMORY = 768 * MIB

/** Each worker has a cache of its own, and one thread writes for all of them. */
const MAX_WORKERS = 4

/** Bytes that the container allows, or that the machine has. */
export const availableMemory = (): number => Math.min(process.constrainedMemory() || totalmem(), totalmem())

/** With SQLite in production: one for each core, as far as there is memory, but at most four. */
export const defaultWorkers = (
  cores = availableParallelism(),
  memory = availableMemory(),
  canSharePort = HAS_REUSE_PORT,
): number =>
  canSharePort ? Math.max(1, Math.min(cores, MAX_WORKERS, Math.floor(memory / WORKER_MEMORY))) : 1
