/**
 * The writer thread: runs each batch of calls in one transaction, so that many writes share one fsync (group commit), and
 * neither an fsync nor another process's lock holds up the event loop.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { openDatabase } from './database.ts'
import { prepareOperations } from './operations.ts'
import type { Call, Failure, Outcome, WriterData, WriterMessage, WriterRequest } from './writer-protocol.ts'

/** Milliseconds to wait for another process's lock before a batch fails. */
const LOCK_TIMEOUT = 5_000

/** Milliseconds between two looks for changes made by other processes, such as a command line tool. */
const WATCH_INTERVAL = 250

const { file } = workerData as WriterData
const db = openDatabase(file, LOCK_TIMEOUT)
const operations = prepareOperations(db) as unknown as Record<
  string,
  (...args: readonly unknown[]) => unknown
>

const failure = (error: unknown): Failure => ({
  message: error instanceof Error ? error.message : String(error),
  code: error instanceof Error && 'code' in error ? String(error.code) : undefined,
})

/** Each call in a savepoint of its own: one that fails takes back its own changes and nobody else's. */
const runCall = db.transaction(({ operation, args }: Call): unknown => operations[operation]?.(...args))

const runBatch = db.transaction((calls: readonly Call[]): Outcome[] =>
  calls.map(call => {
    try {
      return { value: runCall(call) }
    } catch (error) {
      // A full disk or a lost lock ends the whole transaction, not the call alone.
      if (!db.inTransaction) throw error
      return { failure: failure(error) }
    }
  }),
)

const post = (message: WriterMessage): void => parentPort?.postMessage(message)

// SQLite counts the commits that other connections make; this process has no other one that writes.
const dataVersion = db.prepare('PRAGMA data_version').pluck()
let version = dataVersion.get()
// What changed before this first look is not known either.
post({ type: 'changedElsewhere' })
const watch = setInterval(() => {
  const now = dataVersion.get()
  if (now !== version) post({ type: 'changedElsewhere' })
  version = now
}, WATCH_INTERVAL)

parentPort?.on('message', (calls: WriterRequest) => {
  if (calls === null) {
    clearInterval(watch)
    db.close()
    parentPort?.close()
    return
  }
  try {
    post({ type: 'committed', outcomes: runBatch.immediate(calls) })
  } catch (error) {
    post({ type: 'failed', failure: failure(error) })
  }
})
