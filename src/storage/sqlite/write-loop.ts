/**
 * Runs the batches of the event loops in one transaction, so that many writes share one fsync (group commit), and none blocks an event
 * loop. After each commit it checks that the open file is still the one at its path, and only then acknowledges the batch. It makes the
 * checkpoints itself, after that check: SQLite would make them within the commit, even into a file that was replaced.
 */
import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { Write } from '../operations/write.ts'
import { type Connection, openDatabase, stamp } from './database.ts'
import { FileContent, type FileProblem, pathProblem, type WalState } from './database-file.ts'
import { importFeatures } from './feature-modules.ts'
import { InvalidationPublisher } from './invalidation-ring.ts'
import { RolledBack } from './operation-runner.ts'
import { prepareOperations, type RunOperation } from './operations.ts'
import {
  BARRIER,
  type Call,
  type Failure,
  type Outcome,
  type OwnerMessage,
  PROBE,
  type WriterData,
  type WriterMessage,
} from './writer-protocol.ts'

/** Milliseconds to wait for another process's lock before a batch fails. */
const LOCK_TIMEOUT = 5_000

/** Milliseconds between two checks for changes by other processes, such as the command line, and of the file. */
const WATCH_INTERVAL = 250

/** Frames (4 MB) in the WAL at which a checkpoint is made: SQLite's default. */
const CHECKPOINT_FRAMES = 1_000

/** Bytes that must be free before a full disk is used again: the page of a probe may fit into space that the failed batch has left. */
const MIN_FREE_SPACE = 2 ** 20

const DISK_FULL: Failure = { message: 'the disk is full', code: 'SQLITE_FULL', stack: undefined }

/** The stack of an error and of its cause, which does not cross threads otherwise. */
const stackOf = ({ stack, cause }: Error): string | undefined =>
  cause instanceof Error ? `${stack}\ncaused by: ${cause.stack}` : stack

const toFailure = (error: unknown): Failure => ({
  message: error instanceof Error ? error.message : String(error),
  code: error instanceof Error && 'code' in error ? String(error.code) : undefined,
  stack: error instanceof Error ? stackOf(error) : undefined,
})

type Committed = Extract<WriterMessage, { type: 'committed' }>
type Failed = Extract<WriterMessage, { type: 'failed' }>

const failedWith = (failure: Failure): Failed => ({ type: 'failed', failure })

const failedFor = ({ message }: FileProblem): Failed =>
  failedWith({ message, code: undefined, stack: undefined })

interface CommittedBatch {
  readonly outcomes: readonly Outcome[]
  /** The ids of everyone whose cached state is stale. */
  readonly evicted: readonly string[]
}

/** Each call has a savepoint: one that fails rolls back its own changes only. */
const prepareBatch = (db: Connection, operations: ReadonlyMap<string, RunOperation>) => {
  const runCall = db.transaction(({ operation, args }: Call): Write<unknown> => {
    const run = operations.get(operation)
    if (run === undefined) throw new Error(`Unknown operation: ${operation}`)
    return run(...args)
  })

  return db.transaction((calls: readonly Call[], isStamped: boolean): CommittedBatch => {
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
}

const openForWrites = (path: string): Connection => {
  const db = openDatabase(path, LOCK_TIMEOUT)
  db.pragma('wal_autocheckpoint = 0')
  // A savepoint, or a statement, that changes more than 64 KB would copy the pages to a temporary file first.
  db.pragma('temp_store = MEMORY')
  return db
}

class WriteLoop {
  readonly #files: WriterData
  readonly #exit: () => void
  readonly #db: Connection
  readonly #invalidations: InvalidationPublisher
  readonly #runBatch: ReturnType<typeof prepareBatch>
  readonly #content: FileContent
  readonly #totalChanges
  /** Counts the commits of other processes. */
  readonly #dataVersion
  readonly #watch: NodeJS.Timeout
  readonly #clients = new Set<MessagePort>()
  /** The state of the WAL at the last check of the file, which follows each commit. */
  #walState: WalState = { log: 0, checkpointed: 0 }
  #version: number | undefined
  #problem: FileProblem | null = null
  /** Whether the WAL was emptied into the database file since the problem began. */
  #isWalEmptied = false
  /**
   * Whether the next batch is the first one in the WAL. The first and the last batch of a WAL increment the stamp: the first shows whether a
   * WAL belongs to the database, the last distinguishes an earlier copy of the database from what a checkpoint makes of it.
   */
  #startsWal = true
  #wasDiskFull = false
  /** Whether a commit is not acknowledged yet, because the file is not checked. */
  #hasUncheckedCommit = false
  #isCheckpointDue = false

  constructor(
    files: WriterData,
    db: Connection,
    operations: ReadonlyMap<string, RunOperation>,
    exit: () => void,
  ) {
    this.#files = files
    this.#db = db
    this.#exit = exit
    this.#invalidations = new InvalidationPublisher(files.invalidations)
    this.#runBatch = prepareBatch(db, operations)
    this.#totalChanges = db.prepare<[], number>('SELECT total_changes()').pluck()
    this.#dataVersion = db.prepare<[], number>('PRAGMA data_version').pluck()
    const selectWalState = db.prepare<[], WalState>('PRAGMA wal_checkpoint(NOOP)')
    this.#content = new FileContent(files, db.pragma('page_size', { simple: true }) as number, () => {
      this.#walState = selectWalState.get() ?? this.#walState
      return this.#walState
    })
    this.#version = this.#dataVersion.get()
    // Changes from before this first read are unknown.
    this.#invalidations.publishEveryone()
    this.#tryCheckFile()
    this.#watch = setInterval(() => this.#checkForChanges(), WATCH_INTERVAL)
  }

  addClient(client: MessagePort): void {
    this.#clients.add(client)
    client.postMessage({ type: 'fileProblem', problem: this.#problem } satisfies WriterMessage)
    client.on('message', (calls: readonly Call[]) => {
      this.#respond(this.#takeWaiting(client, calls))
      this.#checkpointIfDue()
    })
    // The client's thread has ended.
    client.on('close', () => this.#clients.delete(client))
  }

  close(): void {
    try {
      // The last connection to close makes a checkpoint, so this batch is the last one in the WAL.
      if (!this.#startsWal && this.#problem === null) this.#runBatch.immediate([], true)
    } catch {
      // The WAL stays without its last stamp.
    }
    this.#end()
  }

  #checkForChanges(): void {
    try {
      this.#checkFile()
      const now = this.#dataVersion.get()
      if (now !== this.#version) this.#invalidations.publishEveryone()
      this.#version = now
    } catch {
      // The disk fails reads. The next batch reports it to its callers.
    }
  }

  /** Checkpoints the WAL into the open database file, wherever that is now: a restart would not find the WAL, or beside another database. */
  #emptyWal({ needsRestart, mayHaveOtherUsers }: FileProblem): void {
    if (this.#isWalEmptied || needsRestart || mayHaveOtherUsers) return
    try {
      this.#runBatch.immediate([], true)
      this.#content.checkpoint(() => {
        const [state] = this.#db.pragma('wal_checkpoint(TRUNCATE)') as { busy: number }[]
        this.#isWalEmptied = state?.busy === 0
      })
    } catch {
      // The next check tries again.
    }
  }

  #checkFile(): FileProblem | null {
    const now = this.#content.problem() ?? pathProblem(this.#files)
    if (now?.message !== this.#problem?.message)
      for (const client of this.#clients)
        client.postMessage({ type: 'fileProblem', problem: now } satisfies WriterMessage)
    if (this.#problem !== null && now === null) this.#startsWal = true
    this.#problem = now
    if (now === null) this.#isWalEmptied = false
    else this.#emptyWal(now)
    return now
  }

  #tryCheckFile(): FileProblem | null {
    try {
      return this.#checkFile()
    } catch {
      return null
    }
  }

  #isDiskStillFull(): boolean {
    if (!this.#wasDiskFull) return false
    const { bavail, bsize } = statfsSync(dirname(this.#files.path))
    return bavail * bsize < MIN_FREE_SPACE
  }

  #commit(calls: readonly Call[]): Committed | Failed {
    if (this.#problem !== null) return failedFor(this.#problem)
    const isIdle = calls.every(({ operation }) => operation === BARRIER)
    const isProbe = calls.some(({ operation }) => operation === PROBE)
    if (isProbe && this.#isDiskStillFull()) return failedWith(DISK_FULL)
    const endsWal = this.#walState.log - this.#walState.checkpointed >= CHECKPOINT_FRAMES
    const changesBefore = this.#totalChanges.get()
    const isStamped = !isIdle && (this.#startsWal || endsWal || isProbe)
    const { outcomes, evicted } = this.#runBatch.immediate(calls, isStamped)
    this.#hasUncheckedCommit = true
    this.#startsWal &&= isIdle
    // A small write may still fit into the WAL, which does not mean that the disk has space again.
    this.#wasDiskFull = this.#isDiskStillFull()
    const found = this.#checkFile()
    if (found !== null) return failedFor(found)
    this.#invalidations.publish(evicted)
    this.#hasUncheckedCommit = false
    this.#isCheckpointDue = endsWal
    const hasWritten = !this.#wasDiskFull && (isProbe || this.#totalChanges.get() !== changesBefore)
    return { type: 'committed', outcomes, hasWritten }
  }

  /** The batches that wait, one of each client: an event loop sends the next one when it has the response. */
  #takeWaiting(first: MessagePort, batch: readonly Call[]): Map<MessagePort, readonly Call[]> {
    const batches = new Map([[first, batch]])
    for (const client of this.#clients) {
      const waiting = client === first ? undefined : receiveMessageOnPort(client)
      if (waiting !== undefined) batches.set(client, waiting.message)
    }
    return batches
  }

  /** Posts one response to each client: event loops match responses with batches by their order. */
  #respond(batches: ReadonlyMap<MessagePort, readonly Call[]>): void {
    let failure: Failure | null = null
    let response: Committed | Failed
    try {
      response = this.#commit([...batches.values()].flat())
    } catch (error) {
      failure = toFailure(error)
      response = failedWith(failure)
    }
    // The callers do not learn whom the batch has changed, so nothing may stay cached.
    if (this.#hasUncheckedCommit) this.#invalidations.publishEveryone()
    this.#hasUncheckedCommit = false
    let from = 0
    for (const [client, { length }] of batches) {
      client.postMessage(
        response.type === 'failed'
          ? response
          : { ...response, outcomes: response.outcomes.slice(from, from + length) },
      )
      from += length
    }
    if (failure !== null) this.#recover(failure)
  }

  #checkpointIfDue(): void {
    if (!this.#isCheckpointDue) return
    try {
      this.#isCheckpointDue = false
      this.#content.checkpoint(() => this.#db.pragma('wal_checkpoint(PASSIVE)'))
      this.#startsWal = true
      this.#checkFile()
    } catch (error) {
      this.#recover(toFailure(error))
    }
  }

  /** A truncated WAL causes the same read errors as a failing disk, so the file is checked first. */
  #recover({ code }: Failure): void {
    this.#wasDiskFull = code === DISK_FULL.code
    if (this.#tryCheckFile() !== null || !code?.startsWith('SQLITE_IOERR')) return
    // After a disk failure, SQLite's page cache may differ from the disk: the next thread opens a new connection.
    this.#end()
    this.#exit()
  }

  #end(): void {
    clearInterval(this.#watch)
    this.#db.close()
    for (const client of this.#clients) client.close()
  }
}

/**
 * Runs the batches of the clients that `owner` sends, until it sends the end. @param exit ends the thread at once, after a disk failure.
 * @throws {Error} when another file is at the path, {FeatureError} when a feature cannot be imported.
 */
export const runWriteLoop = async (data: WriterData, owner: MessagePort, exit: () => void): Promise<void> => {
  // Checked before SQLite opens the path: opening another file would change it.
  const problem = pathProblem(data)
  if (problem !== null) throw new Error(problem.message)
  const db = openForWrites(data.path)
  const operations = await prepareOperations(db, data.operations, await importFeatures(data.features))
  const loop = new WriteLoop(data, db, operations, exit)
  owner.on('message', (message: OwnerMessage) => {
    if (message !== null) return loop.addClient(message.client)
    loop.close()
    owner.close()
  })
}
