/** The thread of `writer-pool.ts`. */
import { type MessagePort, parentPort } from 'node:worker_threads'
import { runWriteLoop } from '#storage/sqlite/write-loop'
import type { WriterData } from '#storage/sqlite/writer-protocol'

export interface PooledWriter {
  readonly data: WriterData
  readonly owner: MessagePort
}

parentPort?.on('message', ({ data, owner }: PooledWriter) => {
  const end = () => owner.close()
  runWriteLoop(data, owner, end).catch(end)
})
