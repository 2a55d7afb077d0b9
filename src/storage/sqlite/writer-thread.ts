/**
 * The writer thread runs the batches of its clients, the event loops, in one transaction, so that many writes share one fsync (group
 * commit), and neither an fsync nor another process's lock blocks an event loop.
 *
 * After each commit it checks that the open file is still the one at its path, and only then acknowledges the batch. It makes
 * the checkpoints itself, after that check: SQLite would make them within the commit, even into a file that was replaced.
 */
import { statfsSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { dirname } from 'node:path'
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { releaseIdleMemory } from '../../idle-memory.ts'
import type { Write } from '../operations/write.ts'
import { openDatabase, stamp } from './database.ts'
import { FileContent, type FileProblem, pathProblem, type WalState } from './database-file.ts'
import { importFeatures } from './feature-modules.ts'
import { InvalidationPublisher } from './invalidation-ring.ts'
import { RolledBack } from './operation-runner.ts'
import { prepareOperations } from './operations.ts'
import type { Call, Failure, Outcome, OwnerMessage, WriterData, WriterMessage } from './writer-protocol.ts'

/** Milliseconds to wait for another process's lock before a batch fails. */
const LOCK_TIMEOUT = 5_000

/** Milliseconds between two checks for changes by other processes, such as the command line, and of the file. */
const WATCH_INTERVAL = 250

/** Frames (4 MB) in the WAL at which a checkpoint is made: SQLite's default. */
const CHECKPOINT_FRAMES = 1_000

/**
 * Bytes that must be free before a disk that was full is used again. A probe writes one page, which may fit into space that the
 * failed batch has left.
 */
const MIN_FREE_SPACE = 2 ** 20

const files = workerData as WriterData
const invalidations = new InvalidationPublisher(files.invalidations)
const clients = new Set<MessagePort>()

const postToAll = (message: WriterMessage): void => {
  for (const client of clients) client.postMessage(message)
}

// Checked before SQLite opens the path: opening another file would change it.
const initialProblem = pathProblem(files)
if (initialProblem !== null) throw new Error(initialProblem.message)

const db = openDatabase(files.path, LOCK_TIMEOUT)
db.pragma('wal_autocheckpoint = 0')
// A savepoint, or a statement, that changes more than 64 KB would copy the pages to a temporary file first: a third of a flush.
db.pragma('temp_store = MEMORY')
const operations = prepareOperations(db, await importFeatures(files.features))
const pageSize = db.pragma('page_size', { simple: true }) as number
const totalChanges = db.prepare<[], number>('SELECT total_changes()').pluck()
const selectWalState = db.prepare<[], WalState>('PRAGMA wal_checkpoint(NOOP)')
/** As of the last check of the file, which follows each commit. */
let walState: WalState = { log: 0, checkpointed: 0 }
const readWalState = (): WalState => {
  walState = selectWalState.get() ?? walState
  return walState
}
const DISK_FULL: Failure = { message: 'the disk is full', code: 'SQLITE_FULL', stack: undefined }

const content = new FileContent(files, pageSize, readWalState)

/** With that of its cause, which does not cross threads otherwise. */
const stackOf = ({ stack, cause }: Error): string | undefined =>
  cause instanceof Error ? `${stack}\ncaused by: ${cause.stack}` : stack

const toFailure = (error: unknown): Failure => ({
  message: error instanceof Error ? error.message : String(error),
  code: error instanceof Error && 'code' in error ? String(error.code) : undefined,
  stack: error instanceof Error ? stackOf(error) : undefined,
})

/** Runs in a savepoint: a call that fails rolls back its own changes only. */
const runCall = db.transaction(({ operation, args }: Call): Write<unknown> => {
  const run = operations.get(operation)
  if (run === undefined) throw new Error(`Unknown operation: ${operation}`)
  return run(...args)
})

interface CommittedBatch {
  /** In the order of the calls. */
  readonly outcomes: readonly Outcome[]
  /** The ids of everyone whose cached state is stale. */
  readonly evicted: readonly string[]
}

const runBatch = db.transaction((calls: readonly Call[], isStamped: boolean): CommittedBatch => {
  if (isStamped) stamp(db)
  const evicted: string[] = []
  const outcomeOf = ({ result, evicts }: Write<unknown>): Outcome => {
    if (evicts !== null) evicted.push(...evicts)
    return { result }
  }
  const outcomes = calls.map(call => {
    try {
      return outcomeOf(runCall(call))
    } catch (error) {
      // A full disk or a lost lock rolls back the whole transaction, not only the call.
      if (!db.inTransaction) throw error
      if (error instanceof RolledBack) return outcomeOf(error.write)
      return { failure: toFailure(error) }
    }
  })
  return { outcomes, evicted }
})

let problem: FileProblem | null = null
/** Whether the WAL was emptied into the database file since the problem began. */
let isWalEmptied = false

/**
 * Checkpoints the whole WAL into the open database file, wherever that file is now. Otherwise a restart would not find the WAL,
 * or would find it beside another database.
 */
const emptyWal = ({ needsRestart, mayHaveOtherUsers }: FileProblem): void => {
  if (isWalEmptied || needsRestart || mayHaveOtherUsers) return
  try {
    runBatch.immediate([], true)
    content.checkpoint(() => {
      const [state] = db.pragma('wal_checkpoint(TRUNCATE)') as { busy: number }[]
      isWalEmptied = state?.busy === 0
    })
  } catch {
    // The next check tries again.
  }
}

/**
 * Whether the next batch is the first one in the WAL. The first and the last batch of a WAL increment the stamp: by the first
 * stamp a WAL of another database is recognised, and by the last one an earlier copy of the database differs from what a
 * checkpoint makes of it.
 */
let startsWal = true

const checkFile = (): FileProblem | null => {
  const now = content.problem() ?? pathProblem(files)
  if (now?.message !== problem?.message) postToAll({ type: 'fileProblem', problem: now })
  if (problem !== null && now === null) startsWal = true
  problem = now
  if (now === null) isWalEmptied = false
  else emptyWal(now)
  return now
}

const checkpoint = (): void => {
  isCheckpointDue = false
  content.checkpoint(() => db.pragma('wal_checkpoint(PASSIVE)'))
  startsWal = true
}

/** Whether the disk was full during the last batch. */
let wasDiskFull = false

const isDiskStillFull = (): boolean => {
  if (!wasDiskFull) return false
  const { bavail, bsize } = statfsSync(dirname(files.path))
  return bavail * bsize < MIN_FREE_SPACE
}

type Committed = Extract<WriterMessage, { type: 'committed' }>
type Failed = Extract<WriterMessage, { type: 'failed' }>

const failedWith = (failure: Failure): Failed => ({ type: 'failed', failure })

const failedFor = ({ message }: FileProblem): Failed =>
  failedWith({ message, code: undefined, stack: undefined })

/** Whether a commit is not acknowledged yet, because the file is not checked. */
let hasUncheckedCommit = false
let isCheckpointDue = false

/** Commits a batch and checks the file. @returns the response to the batch. @throws what SQLite or the disk failed with. */
const commit = (calls: readonly Call[]): Committed | Failed => {
  if (problem !== null) return failedFor(problem)
  const isIdle = calls.every(({ operation }) => operation === 'barrier')
  const isProbe = calls.some(({ operation }) => operation === 'probe')
  if (isProbe && isDiskStillFull()) return failedWith(DISK_FULL)
  const endsWal = walState.log - walState.checkpointed >= CHECKPOINT_FRAMES
  const changesBefore = totalChanges.get()
  const { outcomes, evicted } = runBatch.immediate(calls, !isIdle && (startsWal || endsWal || isProbe))
  hasUncheckedCommit = true
  startsWal &&= isIdle
  // A small write may still fit into the WAL, which does not mean that the disk has space again.
  wasDiskFull = isDiskStillFull()
  const found = checkFile()
  if (found !== null) return failedFor(found)
  invalidations.publish(evicted)
  hasUncheckedCommit = false
  isCheckpointDue = endsWal
  const hasWritten = !wasDiskFull && (isProbe || totalChanges.get() !== changesBefore)
  return { type: 'committed', outcomes, hasWritten }
}

/** After a disk failure, SQLite's page cache may differ from the disk: the next thread opens a new connection. */
const exitThread = (): void => {
  db.close()
  process.exit(1)
}

const tryCheckFile = (): FileProblem | null => {
  try {
    return checkFile()
  } catch {
    return null
  }
}

// Counts the commits of other connections. No other connection of this process writes.
const dataVersion = db.prepare('PRAGMA data_version').pluck()
let version = dataVersion.get()
// Changes from before this first read are unknown.
invalidations.publishEveryone()
tryCheckFile()
const watch = setInterval(() => {
  try {
    checkFile()
    const now = dataVersion.get()
    if (now !== version) invalidations.publishEveryone()
    version = now
  } catch {
    // The disk fails reads. The next batch reports it to its callers.
  }
}, WATCH_INTERVAL)

const close = (): void => {
  clearInterval(watch)
  try {
    // The last connection to close makes a checkpoint, so this batch is the last one in the WAL.
    if (!startsWal && problem === null) runBatch.immediate([], true)
  } catch {
    // The WAL stays without its last stamp.
  }
  db.close()
  for (const client of clients) client.close()
  parentPort?.close()
}

/** After an error: a truncated WAL causes the same read errors as a failing disk, so the file is checked first. */
const recover = ({ code }: Failure): void => {
  wasDiskFull = code === DISK_FULL.code
  if (tryCheckFile() === null && code?.startsWith('SQLITE_IOERR')) exitThread()
}

/** The batches that wait, one of each client: an event loop sends the next one when it has the response. */
const takeWaiting = (first: MessagePort, batch: readonly Call[]): Map<MessagePort, readonly Call[]> => {
  const batches = new Map([[first, batch]])
  for (const client of clients) {
    const waiting = client === first ? undefined : receiveMessageOnPort(client)
    if (waiting !== undefined) batches.set(client, waiting.message)
  }
  return batches
}

/** Posts exactly one response to each client, since event loops match responses with batches by their order. */
const respond = (batches: ReadonlyMap<MessagePort, readonly Call[]>): void => {
  let failure: Failure | null = null
  let response: Committed | Failed
  try {
    response = commit([...batches.values()].flat())
  } catch (error) {
    failure = toFailure(error)
    response = failedWith(failure)
  }
  // The callers do not learn whom the batch has changed, so nothing may stay cached.
  if (hasUncheckedCommit) invalidations.publishEveryone()
  hasUncheckedCommit = false
  let from = 0
  for (const [client, { length }] of batches) {
    client.postMessage(
      response.type === 'failed'
        ? response
        : { ...response, outcomes: response.outcomes.slice(from, from + length) },
    )
    from += length
  }
  if (failure !== null) recover(failure)
}

const checkpointIfDue = (): void => {
  if (!isCheckpointDue) return
  try {
    checkpoint()
    checkFile()
  } catch (error) {
    recover(toFailure(error))
  }
}

const addClient = (client: MessagePort): void => {
  clients.add(client)
  client.postMessage({ type: 'fileProblem', problem } satisfies WriterMessage)
  client.on('message', (calls: readonly Call[]) => {
    respond(takeWaiting(client, calls))
    checkpointIfDue()
  })
  // The client's thread has ended.
  client.on('close', () => clients.delete(client))
}

// The code that Node compiled, for the next start: otherwise it is kept at the end of the thread, and not if the process is killed.
flushCompileCache()
releaseIdleMemory()

parentPort?.on('message', (message: OwnerMessage) => {
  if (message === null) close()
  else addClient(message.client)
})
