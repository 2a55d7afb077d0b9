/** The thread of `writer-pool.ts`. */
import { type MessagePort, parentPort } from 'node:worker_threads'
import { runWriteLoop } from '../../src/storage/sqlite/write-loop.ts'
import type { WriterData } from '../../src/storage/sqlite/writer-protocol.ts'

export interface PooledWriter {
  readonly data: WriterData
  readonly owner: MessagePort
}

parentPort?.on('message', ({ data, owner }: PooledWriter) => {
  const end = () => owner.close()
  runWriteLoop(data, owner, end).catch(end)
})
