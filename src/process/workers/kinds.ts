/** The two kinds of workers: processes that share a PostgreSQL, and threads that share the process that has a SQLite file open. */
import cluster from 'node:cluster'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Readable } from 'node:stream'
import { getHeapStatistics } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { allFeatures } from '#features/built-in'
import { toListenError } from '#http/listen-error'
import type { StorageLocation } from '#storage/location'
import type { Config } from '../config/config.ts'
import type { LogOutput } from '../logging/log-output.ts'
import { type Channel, isLogLine, type ThreadData } from './channel.ts'

export interface WorkerEnd {
  readonly reason: object
  readonly succeeded: boolean
}

export interface WorkerHandle extends Channel {
  readonly id: number | undefined
  kill(): void
  /** Called once, when the worker has ended and its whole log has arrived. */
  onEnd(listener: (end: WorkerEnd) => void): void
}

export interface WorkerKind {
  /** Whether workers can only share a port that is known when they start. */
  readonly needsPort: boolean
  /** @param port as configured, or as the system has chosen it for the first worker. */
  start(port: number): WorkerHandle
  /** Called when all workers have ended. */
  close(): Promise<void>
}

const forwardLog = (log: Readable, output: LogOutput): void => {
  let start = ''
  log.setEncoding('utf8')
  log.on('data', (chunk: string) => {
    const lines = (start + chunk).split('\n')
    start = lines.pop() ?? ''
    for (const line of lines) output.write(`${line}\n`)
  })
}

const startProcess = (output: LogOutput): WorkerHandle => {
  const worker = cluster.fork()
  if (worker.process.stdout !== null) forwardLog(worker.process.stdout, output)
  return {
    id: worker.process.pid,
    send(message, onSent) {
      // An error without a callback would end the process.
      if (worker.isConnected()) worker.send(message as object, error => onSent?.(error === null))
      else onSent?.(false)
    },
    onMessage: listener => void worker.on('message', listener),
    get isOpen() {
      return worker.isConnected()
    },
    kill: () => void worker.process.kill('SIGKILL'),
    onEnd(listener) {
      const { promise, resolve } = Promise.withResolvers<WorkerEnd>()
      // 'close' comes after 'exit', when the whole log has arrived.
      worker.process.once('close', (code, signal) =>
        resolve({ reason: { code, signal }, succeeded: code === 0 }),
      )
      // A process that could not be started has no 'close'.
      worker.once('error', err => resolve({ reason: { err }, succeeded: false }))
      void promise.then(listener)
    },
  }
}

/**
 * Processes. Only the primary writes the log, so that lines do not interleave, and a starting worker does not make the output blocking
 * for all (libuv does so with inherited descriptors).
 */
export const processes = (output: LogOutput): WorkerKind => {
  cluster.setupPrimary({ stdio: ['inherit', 'pipe', 'inherit', 'ipc'] })
  return {
    needsPort: false,
    start: () => startProcess(output),
    close: async () => undefined,
  }
}

const MIB = 2 ** 20

const startThread = (
  data: ThreadData,
  heapLimit: number,
  output: LogOutput,
  onEnded: () => void,
): WorkerHandle => {
  const { writers, rateLimits } = data.store
  const thread = new Worker(new URL('../../server.ts', import.meta.url), {
    workerData: data,
    transferList: [writers, rateLimits],
    resourceLimits: { maxOldGenerationSizeMb: heapLimit / MIB },
  })
  let isOpen = true
  let failure: unknown = null
  thread.on('error', error => {
    failure = error
  })
  thread.on('message', message => {
    if (isLogLine(message)) output.write(message.line)
  })
  return {
    id: thread.threadId,
    send(message, onSent) {
      thread.postMessage(message)
      onSent?.(isOpen)
    },
    onMessage: listener => void thread.on('message', listener),
    get isOpen() {
      return isOpen
    },
    kill: () => void thread.terminate(),
    onEnd(listener) {
      thread.once('exit', code => {
        isOpen = false
        onEnded()
        listener({ reason: failure === null ? { code } : { err: failure }, succeeded: code === 0 })
      })
    },
  }
}

/** `SO_REUSEPORT` would let a second service of the same user share the port, and each would get some of the other's requests. */
const assertPortIsFree = async ({ host, port }: Config): Promise<void> => {
  const server = createServer()
  try {
    server.listen({ host, port })
    await once(server, 'listening')
  } catch (error) {
    throw toListenError(error, { host, port }, { host: 'HOST', port: 'PORT' })
  }
  server.close()
  await once(server, 'close')
}

/**
 * Threads of this process, which has the database open.
 * @throws {ListenError} if the address cannot be used; {Error} if the database cannot be opened or migrated.
 */
export const threads = async (
  { file }: Extract<StorageLocation, { engine: 'sqlite' }>,
  config: Config,
  output: LogOutput,
): Promise<WorkerKind> => {
  await assertPortIsFree(config)
  const { openSharedStore } = await import('#core/store/sqlite')
  const shared = await openSharedStore(file, allFeatures())
  // Together, the heaps of the workers are as large as that of one process may be.
  const heapLimit = getHeapStatistics().heap_size_limit / config.workers
  return {
    needsPort: true,
    start(port) {
      const { store, remove } = shared.addWorker()
      return startThread({ store, port }, heapLimit, output, remove)
    },
    close: () => shared.storage.close(),
  }
}
