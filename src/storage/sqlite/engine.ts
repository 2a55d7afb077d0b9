/** The SQLite engine: reads on the event loop, writes on the writer thread, which the event loops of a process share. */
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import type { Engine } from '../engine.ts'
import type { InvalidationListener } from '../invalidation.ts'
import type { Schema } from '../migrations/schema.ts'
import type { OpenRateLimit, RateLimit, RateLimitOptions } from '../rate-limit.ts'
import { DatabaseFileHandle, FileWatch, type OpenFiles, pathProblem } from './database-file.ts'
import { SQLITE } from './dialect.ts'
import { assertImportable } from './feature-modules.ts'
import { InvalidationReceiver, newInvalidationBuffer } from './invalidation-ring.ts'
import { ensureSchema } from './migrate.ts'
import { bindingsOf } from './operation-runner.ts'
import { Reader } from './reader.ts'
import { remoteRateLimits, serveRateLimits } from './remote-rate-limits.ts'
import { TimeSlicer } from './time-slicer.ts'
import { Writer } from './writer.ts'
import { type Connect, type StartWriter, WriterOwner } from './writer-owner.ts'

export interface SqliteEngine extends Engine {
  readonly reader: Reader
  readonly timeSlicer: TimeSlicer
}

const FILE_RESTORED = 'the database file is in place again: the service continues'

/** Closes everything on failure. */
const openReader = (file: string, fileHandle: DatabaseFileHandle) => {
  let reader: Reader | undefined
  try {
    reader = new Reader(file)
    return { reader, files: fileHandle.openFiles() }
  } catch (error) {
    reader?.close()
    fileHandle.release()
    throw error
  }
}

/** Milliseconds between deliveries of invalidations to an event loop that has no requests. */
const DELIVERY_INTERVAL = 250

/** What an event loop needs of the database that its process has open. */
interface SharedDatabase {
  readonly files: OpenFiles
  readonly invalidations: SharedArrayBuffer
  /** Passes the port to the writer thread, and that of each thread that replaces it. */
  readonly connectWriter: (connect: Connect) => void
  readonly openRateLimit: OpenRateLimit
  /** Called when this event loop has closed what it had open. @param isDamaged whether the files must stay open. */
  readonly release: (isDamaged: boolean) => Promise<void> | void
}

const engineOfEventLoop = (
  reader: Reader,
  { files, invalidations, connectWriter, openRateLimit, release }: SharedDatabase,
): SqliteEngine => {
  let listener: InvalidationListener | null = null
  const receiver = new InvalidationReceiver(invalidations, {
    invalidate: id => listener?.invalidate(id),
    invalidateAll: () => listener?.invalidateAll(),
  })
  const deliverInvalidations = () => receiver.deliver()
  const deliveries = setInterval(deliverInvalidations, DELIVERY_INTERVAL).unref()
  const watch = new FileWatch(files, problem => {
    reader.setUnavailable(problem !== null)
    writer.setUnavailable(problem !== null)
    listener?.setFeedConnected(problem === null, problem?.message ?? FILE_RESTORED)
  })
  const writer = new Writer({
    deliverInvalidations,
    onFileProblem: problem => watch.setWriterProblem(problem),
  })
  connectWriter(port => writer.connect(port))

  return {
    reader,
    timeSlicer: new TimeSlicer(),
    read: ({ statement, result }) => {
      const { text, values } = statement
      const sql = typeof text === 'string' ? text : text(SQLITE)
      return result(reader.rows(sql, bindingsOf(values)) as never[])
    },
    write: (name, args) => writer.run(name, args),
    openRateLimit,
    subscribe(newListener) {
      listener = newListener
      // The writer thread notifies of changes by other processes from its start.
      listener.setFeedConnected(watch.problem === null, watch.problem?.message)
    },
    deliverInvalidations,
    async ping() {
      reader.get('SELECT 1 FROM sqlite_schema LIMIT 1')
      await writer.probe()
    },
    statistics: () => ({ engine: 'sqlite', writer: writer.statistics }),
    async close() {
      await writer.close()
      watch.stop()
      clearInterval(deliveries)
      listener?.closed()
      // The last connection to close makes a checkpoint, which must not happen in a file that was overwritten. The end of the
      // process closes the connection without one.
      if (!watch.problem?.needsRestart) reader.close()
      await release(watch.problem?.needsRestart === true)
    },
  }
}

/** The library is imported with the first count: commands count nothing. */
const rateLimitInMemory = (options: RateLimitOptions): RateLimit => {
  let limit: RateLimit | undefined
  const load = async (): Promise<RateLimit> => {
    const { fromLimiter, memoryLimiter } = await import('../rate-limits.ts')
    limit ??= fromLimiter(memoryLimiter(options))
    return limit
  }
  const run = <Result>(use: (loaded: RateLimit) => Promise<Result>): Promise<Result> =>
    limit === undefined ? load().then(use) : use(limit)
  return {
    consume: (key, seconds) => run(({ consume }) => consume(key, seconds)),
    refund: key => run(({ refund }) => refund(key)),
    used: key => run(({ used }) => used(key)),
    set: (key, count, seconds) => run(({ set }) => set(key, count, seconds)),
    delete: key => run(loaded => loaded.delete(key)),
  }
}

/** Rate limits in memory: a restart forgets the counts, and processes that share a file count apart. No request waits for a write. */
const rateLimitsInMemory = (): OpenRateLimit => {
  const limits = new Map<string, RateLimit>()
  return options => {
    const key = JSON.stringify(options)
    const limit = limits.get(key) ?? rateLimitInMemory(options)
    limits.set(key, limit)
    return limit
  }
}

/** Data that can be sent to a worker thread. */
export interface WorkerStore {
  readonly files: OpenFiles
  readonly invalidations: SharedArrayBuffer
  readonly writers: MessagePort
  readonly rateLimits: MessagePort
}

export interface SharedEngine {
  /** The engine of this event loop. Closed after those of the workers, it ends the writer thread. */
  readonly engine: SqliteEngine
  /** @returns the store of a new worker, whose ports are to be transferred; `remove` is to be called when it has ended. */
  addWorker(): { readonly store: WorkerStore; readonly remove: () => void }
}

/**
 * Opens the database in `file`, which is created or migrated if needed. @param operations the URL of the module with the writes, see
 * `WriterOperations`. @param startWriter by default starts a thread for this store. @throws {Error} when it cannot be opened or migrated.
 */
export const openSharedEngine = async (
  file: string,
  operations: string,
  schema: Schema,
  startWriter?: StartWriter,
): Promise<SharedEngine> => {
  // The writer thread imports them too. A feature that it could not find must not start.
  const { features } = schema
  await assertImportable(features)
  await ensureSchema(file, schema)
  const fileHandle = new DatabaseFileHandle(file)
  const { reader, files } = openReader(file, fileHandle)
  const invalidations = newInvalidationBuffer()
  const modules = features.map(({ name, module }) => ({ name, module }))
  const owner = new WriterOwner({ ...files, operations, features: modules, invalidations }, startWriter)
  const openRateLimit = rateLimitsInMemory()
  const engine = engineOfEventLoop(reader, {
    files,
    invalidations,
    openRateLimit,
    connectWriter: connect => owner.addClient(connect),
    async release(isDamaged) {
      await owner.close()
      if (!isDamaged) fileHandle.release()
    },
  })
  return {
    engine,
    addWorker() {
      const writers = new MessageChannel()
      const rateLimits = new MessageChannel()
      const removeClient = owner.addClient(port => writers.port1.postMessage(port, [port]))
      serveRateLimits(rateLimits.port1, openRateLimit)
      return {
        store: { files, invalidations, writers: writers.port2, rateLimits: rateLimits.port2 },
        remove() {
          removeClient()
          writers.port1.close()
          rateLimits.port1.close()
        },
      }
    },
  }
}

const assertInPlace = (files: OpenFiles): void => {
  const problem = pathProblem(files)
  if (problem !== null) throw Object.assign(new Error(problem.message), { code: 'DATABASE_FILE' })
}

/** Checks again afterwards: another database at the path would still be read when it is gone. */
const joinReader = (files: OpenFiles): Reader => {
  // Opening another file would change it.
  assertInPlace(files)
  const reader = new Reader(files.path)
  try {
    assertInPlace(files)
    return reader
  } catch (error) {
    reader.close()
    throw error
  }
}

/** Opens the database in a worker thread of a process that has it open. @throws {Error} when other files are at the path. */
export const joinSharedEngine = ({ files, invalidations, writers, rateLimits }: WorkerStore): SqliteEngine =>
  engineOfEventLoop(joinReader(files), {
    files,
    invalidations,
    openRateLimit: remoteRateLimits(rateLimits),
    connectWriter: connect => void writers.on('message', connect),
    release() {
      writers.close()
      rateLimits.close()
    },
  })
