/**
 * The writer thread: runs each batch of calls in one transaction, so that many writes share one fsync (group commit), and
 * neither an fsync nor another process's lock holds up the event loop.
 *
 * After each commit it looks whether the file is still the one at its path, and only then acknowledges. It makes the
 * checkpoints itself, after that look: SQLite would make them within the commit, into whatever the file is by then.
 */
import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import type { Write } from '../write.ts'
import { openDatabase, stamp } from './database.ts'
import { FileContent, type LogState, type Problem, pathProblem } from './database-file.ts'
import { prepareOperations } from './operations.ts'
import type { Call, Failure, Outcome, WriterData, WriterMessage, WriterRequest } from './writer-protocol.ts'

/** Milliseconds to wait for another process's lock before a batch fails. */
const LOCK_TIMEOUT = 5_000

/** Milliseconds between two looks for changes made by other processes, such as a command line tool, and at the file. */
const WATCH_INTERVAL = 250

/** Frames of the log, 4 MB, that are to be in the database's own file next: SQLite's own bound. */
const CHECKPOINT_FRAMES = 1_000

/**
 * Bytes that have to be free before a disk that was full counts as good again: a proof is one page, which may fit where the
 * batch that failed has left room for itself.
 */
const ENOUGH_SPACE = 2 ** 20

const post = (message: WriterMessage): void => parentPort?.postMessage(message)

const opened = workerData as WriterData
// Not even opened where another file is: that would change it.
const problemBefore = pathProblem(opened)
if (problemBefore !== null) throw new Error(problemBefore.message)

const db = openDatabase(opened.path, LOCK_TIMEOUT)
db.pragma('wal_autocheckpoint = 0')
const operations = prepareOperations(db) as unknown as Record<
  string,
  (...args: readonly unknown[]) => Write<unknown>
>
const pageSize = db.pragma('page_size', { simple: true }) as number
const totalChanges = db.prepare<[], number>('SELECT total_changes()').pluck()
const selectLogState = db.prepare<[], LogState>('PRAGMA wal_checkpoint(NOOP)')
/** As of the last look, which follows each commit. */
let logState: LogState = { log: 0, checkpointed: 0 }
const readLogState = (): LogState => {
  logState = selectLogState.get() ?? logState
  return logState
}
const DISK_FULL: Failure = { message: 'the disk is full', code: 'SQLITE_FULL' }

const content = new FileContent(opened, pageSize, readLogState)

const failure = (error: unknown): Failure => ({
  message: error instanceof Error ? error.message : String(error),
  code: error instanceof Error && 'code' in error ? String(error.code) : undefined,
})

/** Each call in a savepoint of its own: one that fails takes back its own changes and nobody else's. */
const runCall = db.transaction(({ operation, args }: Call): Write<unknown> => {
  const run = operations[operation]
  if (run === undefined) throw new Error(`There is no operation ${operation}`)
  return run(...args)
})

const runBatch = db.transaction((calls: readonly Call[], isStamped: boolean): Outcome[] => {
  if (isStamped) stamp(db)
  return calls.map(call => {
    try {
      return { write: runCall(call) }
    } catch (error) {
      // A full disk or a lost lock ends the whole transaction, not the call alone.
      if (!db.inTransaction) throw error
      return { failure: failure(error) }
    }
  })
})

let problem: Problem | null = null
/** What is lost from sight is all in the database's own file. */
let isRescued = false

/**
 * Brings what is committed from a log that a restart would not find, or would find beside another database, into the
 * database's own file, wherever that is now, and empties the log.
 */
const rescue = ({ isFinal, isShared }: Problem): void => {
  if (isRescued || isFinal || isShared) return
  try {
    runBatch.immediate([], true)
    content.checkpoint(() => {
      const [state] = db.pragma('wal_checkpoint(TRUNCATE)') as { busy: number }[]
      isRescued = state?.busy === 0
    })
  } catch {
    // Tried again with the next look.
  }
}

/**
 * A log begins with a stamp, by which it is told from one that does not belong to the database, and ends with one, so that no
 * earlier copy of the database has the stamp of what a checkpoint makes of it. The next batch begins one.
 */
let beginsLog = true

const lookAtFile = (): Problem | null => {
  const now = content.problem() ?? pathProblem(opened)
  if (now?.message !== problem?.message) post({ type: 'file', problem: now })
  if (problem !== null && now === null) beginsLog = true
  problem = now
  if (now === null) isRescued = false
  else rescue(now)
  return now
}

const checkpoint = (): void => {
  content.checkpoint(() => db.pragma('wal_checkpoint(PASSIVE)'))
  beginsLog = true
}

/** The disk was full for the last batch. */
let wasFull = false

const isStillFull = (): boolean => {
  if (!wasFull) return false
  const { bavail, bsize } = statfsSync(dirname(opened.path))
  return bavail * bsize < ENOUGH_SPACE
}

const fail = (failure: Failure): void => post({ type: 'failed', failure })

const refuse = ({ message }: Problem): void => fail({ message, code: undefined })

const run = (calls: readonly Call[]): void => {
  if (problem !== null) return refuse(problem)
  const isIdle = calls.every(({ operation }) => operation === 'barrier')
  const isProof = calls.some(({ operation }) => operation === 'prove')
  if (isProof && isStillFull()) return fail(DISK_FULL)
  const endsLog = logState.log - logState.checkpointed >= CHECKPOINT_FRAMES
  const changesBefore = totalChanges.get()
  const outcomes = runBatch.immediate(calls, !isIdle && (beginsLog || endsLog || isProof))
  beginsLog &&= isIdle
  // A small write may still fit into the log: that does not make a full disk ready.
  wasFull = isStillFull()
  const found = lookAtFile()
  if (found !== null) return refuse(found)
  post({
    type: 'committed',
    outcomes,
    hasWritten: !wasFull && (isProof || totalChanges.get() !== changesBefore),
  })
  if (!endsLog) return
  checkpoint()
  lookAtFile()
}

/** Nothing that this connection has in memory is relied on after the disk has failed: the next thread opens another one. */
const giveUpConnection = (): void => {
  db.close()
  process.exit(1)
}

const lookOrNull = (): Problem | null => {
  try {
    return lookAtFile()
  } catch {
    return null
  }
}

// SQLite counts the commits that other connections make; this process has no other one that writes.
const dataVersion = db.prepare('PRAGMA data_version').pluck()
let version = dataVersion.get()
// What changed before this first look is not known either.
post({ type: 'changedElsewhere' })
post({ type: 'file', problem: lookOrNull() })
const watch = setInterval(() => {
  try {
    lookAtFile()
    const now = dataVersion.get()
    if (now !== version) post({ type: 'changedElsewhere' })
    version = now
  } catch {
    // The disk fails reads: whoever asks for something is told so.
  }
}, WATCH_INTERVAL)

const close = (): void => {
  clearInterval(watch)
  try {
    // The last connection to close makes a checkpoint.
    if (!beginsLog && problem === null) runBatch.immediate([], true)
  } catch {
    // The log stays as it is.
  }
  db.close()
  parentPort?.close()
}

parentPort?.on('message', (calls: WriterRequest) => {
  if (calls === null) return close()
  try {
    run(calls)
  } catch (error) {
    const failed = failure(error)
    fail(failed)
    wasFull = failed.code === DISK_FULL.code
    // A log that was cut short fails reads like a broken disk.
    if (lookOrNull() === null && failed.code?.startsWith('SQLITE_IOERR')) giveUpConnection()
  }
})
