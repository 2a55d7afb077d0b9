/** The thread that commits the writes of a database, see `write-loop.ts`. */
import { flushCompileCache } from 'node:module'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { releaseIdleMemory } from '#base/idle-memory'
import { runWriteLoop } from './write-loop.ts'

await runWriteLoop(workerData, parentPort as MessagePort, () => process.exit(1))
// The code that Node compiled, for the next start: otherwise it is kept at the end of the thread, and not if the process is killed.
flushCompileCache()
releaseIdleMemory()
