/**
 * One thread that commits for all SQLite stores of a test process. A thread for each, which loads the modules of the store again, takes
 * more than half of the CPU time of an app.
 */
import { EventEmitter } from 'node:events'
import { MessageChannel, Worker } from 'node:worker_threads'
import type { StartWriter } from '#storage/sqlite/writer-owner'
import type { PooledWriter } from './writer-pool-thread.ts'

let pool: Worker | undefined

const startPool = (): Worker => {
  const thread = new Worker(new URL('./writer-pool-thread.ts', import.meta.url))
  thread.unref()
  // An operation of a test may end it.
  thread.once('exit', () => {
    pool = undefined
  })
  return thread
}

/** Instead of a thread of the store's own. */
export const pooledWriter: StartWriter = data => {
  pool ??= startPool()
  const { port1, port2 } = new MessageChannel()
  pool.postMessage({ data, owner: port2 } satisfies PooledWriter, [port2])
  const writer = Object.assign(new EventEmitter(), { postMessage: port1.postMessage.bind(port1) })
  port1.on('close', () => writer.emit('exit')).ref()
  return writer
}
