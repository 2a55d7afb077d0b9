/**
 * Detects when the files that SQLite has open are no longer those that a restart would open: the database, its write-ahead log (`-wal`, WAL)
 * and the index of the WAL (`-shm`). SQLite does not check this, and would go on writing to files without a name.
 */
import { closeSync, existsSync, fstatSync, openSync, realpathSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { endsWithCommit, HEADER_SIZE, isSameOrLater, readBytes, sizeOf, walMatches } from './file-format.ts'
import { acquireDescriptor, type FileId, idOf, type SharedDescriptor } from './shared-descriptors.ts'

export interface FileProblem {
  /** Names the file and states what the operator has to do. */
  readonly message: string
  /** The content is wrong, or may be lost. Moving files back does not help. */
  readonly needsRestart: boolean
  /** Another process may be using the database through another `-shm` file. */
  readonly mayHaveOtherUsers: boolean
}

const SUFFIXES = ['', '-wal', '-shm'] as const
type Suffix = (typeof SUFFIXES)[number]

/** The files that SQLite has open. Plain data, so that it can be sent to the writer thread: descriptors belong to the process. */
export interface OpenFiles {
  readonly path: string
  readonly fd: number
  readonly walFd: number
  readonly ids: Readonly<Record<Suffix, FileId>>
}

const lostProblem = (path: string, reason: string, mayHaveOtherUsers: boolean): FileProblem => ({
  message:
    `the database file ${path} ${reason}: requests that need the database get 503. ` +
    'Move the original file back, or restart the service to use the files that are there now',
  needsRestart: false,
  mayHaveOtherUsers,
})

const contentProblem = (path: string): FileProblem => ({
  message:
    `the database file ${path} has been overwritten: requests that need the database get 503. Stop the service, put the ` +
    'correct database in place, remove its -wal and -shm unless they belong to it, and start the service',
  needsRestart: true,
  mayHaveOtherUsers: false,
})

const diskProblem = (path: string): FileProblem => ({
  message:
    `a checkpoint of the database file ${path} failed with a disk error, and pages of an earlier checkpoint may be lost: ` +
    `requests that need the database get 503. ${path}-wal contains all of them. Check the disk, and restart the service`,
  needsRestart: true,
  mayHaveOtherUsers: false,
})

const idAt = (path: string): FileId | undefined => {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stat && idOf(stat)
}

/** Keeps the database file open from before SQLite opens it until after SQLite has closed it. */
export class DatabaseFileHandle {
  readonly #path: string
  readonly #descriptor: SharedDescriptor
  #walFd: number | null = null
  #isReleased = false

  constructor(path: string) {
    this.#path = resolve(path)
    this.#descriptor = acquireDescriptor(this.#path)
  }

  /** Call it when SQLite has read from the file. @throws {Error} when the file was replaced in the meantime. */
  openFiles(): OpenFiles {
    const real = realpathSync.native(this.#path)
    this.#walFd = openSync(`${real}-wal`, 'r')
    const { fd, id } = this.#descriptor
    const wal = idAt(`${real}-wal`)
    const shm = idAt(`${real}-shm`)
    if (idAt(real) !== id || wal === undefined || shm === undefined)
      throw new Error(`${this.#path} was replaced while it was opened`)
    return { path: this.#path, fd, walFd: this.#walFd, ids: { '': id, '-wal': wal, '-shm': shm } }
  }

  release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    if (this.#walFd !== null) closeSync(this.#walFd)
    this.#descriptor.release()
  }
}

/** Compares the files at the paths with the open ones. @returns `null` when they are the same. */
export const pathProblem = ({ path, ids }: OpenFiles): FileProblem | null => {
  try {
    const real = realpathSync.native(path)
    const shm = idAt(`${real}-shm`)
    const present = { '': idAt(real), '-wal': idAt(`${real}-wal`), '-shm': shm }
    const lost = SUFFIXES.find(suffix => present[suffix] !== ids[suffix])
    if (lost === undefined) return null
    const reason = present[lost] === undefined ? 'is missing' : 'has been replaced by another file'
    return lostProblem(path + lost, reason, shm !== undefined && shm !== ids['-shm'])
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return lostProblem(path, code === 'ENOENT' ? 'is missing' : `is not accessible (${code})`, false)
  }
}

const CHECK_INTERVAL = 250

/** From the event loop too: the writer thread may wait for another process's lock. A problem lasts until neither of them sees one. */
export class FileWatch {
  readonly #files: OpenFiles
  readonly #onChange: (problem: FileProblem | null) => void
  readonly #timer: NodeJS.Timeout
  #pathProblem: FileProblem | null = null
  #writerProblem: FileProblem | null = null
  #reported: FileProblem | null = null

  /** @param onChange called when a problem begins, and with `null` when it ends. */
  constructor(files: OpenFiles, onChange: (problem: FileProblem | null) => void) {
    this.#files = files
    this.#onChange = onChange
    this.#timer = setInterval(() => this.#check(), CHECK_INTERVAL).unref()
  }

  get problem(): FileProblem | null {
    return this.#pathProblem ?? this.#writerProblem
  }

  setWriterProblem(problem: FileProblem | null): void {
    // A replacement thread cannot detect what had been overwritten before it started.
    if (!this.#writerProblem?.needsRestart) this.#writerProblem = problem
    this.#check()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #check(): void {
    this.#pathProblem = pathProblem(this.#files)
    const { problem } = this
    if ((problem === null) !== (this.#reported === null)) this.#onChange(problem)
    this.#reported = problem
  }
}

/** The columns of `PRAGMA wal_checkpoint`. Both are negative while another process writes the WAL index. */
export interface WalState {
  /** Frames in the WAL. */
  readonly log: number
  /** Frames of these that are already in the database file. */
  readonly checkpointed: number
}

/** Reads of unexpected bytes before they count as a problem: SQLite may be writing them. */
const ATTEMPTS = 3

/** Reads of a database that is too short: another process may be about to extend it. */
const TRUNCATION_ATTEMPTS = 20

const RETRY_DELAY = 100
const SLEEP_BUFFER = new Int32Array(new SharedArrayBuffer(4))

const sleep = (milliseconds: number): void => {
  Atomics.wait(SLEEP_BUFFER, 0, 0, milliseconds)
}

/**
 * Detects changes of the content by anything but SQLite. The content at the first check counts as correct, and from then on only the
 * checkpoints of the writer thread change the file. A problem lasts until a restart.
 */
export class FileContent {
  readonly #files: OpenFiles
  readonly #pageSize: number
  readonly #readWalState: () => WalState
  #header: Buffer | undefined
  /** The header from before a failed checkpoint. The disk may have kept it. */
  #fallback: Buffer | undefined
  #size = 0
  #problem: FileProblem | null = null

  constructor(files: OpenFiles, pageSize: number, readWalState: () => WalState) {
    this.#files = files
    this.#pageSize = pageSize
    this.#readWalState = readWalState
  }

  /** `null` when the database header and the end of the WAL are as SQLite wrote them. */
  problem(): FileProblem | null {
    const { path } = this.#files
    if (!this.#isOwnDatabase()) this.#problem ??= contentProblem(path)
    else if (!this.#isOwnWal()) this.#problem ??= contentProblem(`${path}-wal`)
    return this.#problem
  }

  /**
   * A failed checkpoint is repeated and writes its pages again, except one that a reader kept from completing: SQLite does not sync it, and
   * never writes its pages again. If the disk fails later, only a restart, which recovers the WAL from its start, restores them.
   */
  checkpoint(run: () => void): void {
    const before = this.#header
    try {
      run()
      this.#fallback = undefined
    } catch (error) {
      this.#fallback ??= before
      const isDiskFailure = String((error as { code?: unknown }).code).startsWith('SQLITE_IOERR')
      if (isDiskFailure && this.#readWalState().checkpointed > 0)
        this.#problem ??= diskProblem(this.#files.path)
    }
  }

  #isOwnDatabase(): boolean {
    const { fd } = this.#files
    let attempts = ATTEMPTS
    for (let attempt = 1; attempt <= attempts; attempt += 1) {
      if (attempt > 1) sleep(RETRY_DELAY)
      const header = readBytes(fd, HEADER_SIZE, 0)
      if (header === undefined || !this.#accepts(header)) continue
      if (!this.#isTruncated(header)) return true
      attempts = TRUNCATION_ATTEMPTS
    }
    return false
  }

  #accepts(header: Buffer): boolean {
    const known = this.#header
    if (known === undefined || isSameOrLater(known, header)) this.#header = header
    else if (this.#fallback !== undefined && header.equals(this.#fallback)) this.#header = header
    else return false
    return true
  }

  /** A checkpoint writes the header before it extends the file, so the size in the header counts only if the file has shrunk. */
  #isTruncated(header: Buffer): boolean {
    const { size } = fstatSync(this.#files.fd)
    if (size < this.#size && size < sizeOf(header)) return true
    this.#size = size
    return false
  }

  /** The number of frames changes while other processes write: then the attempts start again. */
  #isOwnWal(): boolean {
    let frames = this.#readWalState().log
    for (let attempt = 1; frames !== 0 && attempt <= ATTEMPTS; attempt += 1) {
      if (frames > 0 && endsWithCommit(this.#files.walFd, frames, this.#pageSize)) return true
      const now = this.#readWalState().log
      if (now !== frames) attempt = 0
      frames = now
    }
    // Negative: another process is writing the WAL index. The next check decides.
    return frames <= 0
  }
}

/**
 * Refuses the WAL of another database, which SQLite would recover into the database beside it. It is left when a database is replaced
 * after its service was killed or has crashed. @throws {Error} with the code `FOREIGN_LOG`, stating what the operator has to do.
 */
export const assertOwnWal = (path: string): void => {
  const exists = existsSync(path)
  // SQLite resolves symbolic links and keeps the WAL beside the database itself.
  const real = exists ? realpathSync.native(path) : path
  const wal = `${real}-wal`
  if (!existsSync(wal)) return
  const walFd = openSync(wal, 'r')
  const descriptor = exists ? acquireDescriptor(real) : null
  try {
    const header = descriptor === null ? undefined : readBytes(descriptor.fd, HEADER_SIZE, 0)
    if (walMatches(header, walFd)) return
    const message = exists
      ? `${wal} belongs to another database, or to another state of this one: remove it and ${real}-shm to use ${path} as it is`
      : `${path} is missing, but ${wal} exists: put ${path} back, or remove ${wal} to start with an empty database`
    throw Object.assign(new Error(message), { code: 'FOREIGN_LOG' })
  } finally {
    closeSync(walFd)
    descriptor?.release()
  }
}
