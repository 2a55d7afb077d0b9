/**
 * Whether the files that SQLite has open are those that a restart would open: the database at its path, with its write-ahead
 * log (`-wal`) and the log's index (`-shm`). SQLite itself does not look, and writes on into files that nobody finds again.
 */
import { closeSync, existsSync, fstatSync, openSync, realpathSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { endsWithCommit, HEADER_SIZE, isLater, mayContinue, readBytes, sizeOf } from './file-format.ts'
import { type FileId, type HeldFile, holdFile, idOf } from './held-files.ts'

export interface Problem {
  /** With the file's path, and what to do. */
  readonly message: string
  /** The content is not what was written: nothing makes this good but a restart on the right file. */
  readonly isFinal: boolean
  /** Somebody may work on the database with an index of the log other than ours. */
  readonly isShared: boolean
}

/** As it goes to the writer's thread: descriptors are the process's. */
export interface OpenedFile {
  readonly path: string
  readonly fd: number
  readonly walFd: number
  /** By what is appended to the database's path. */
  readonly ids: Readonly<Record<Suffix, FileId>>
}

const SUFFIXES = ['', '-wal', '-shm'] as const
type Suffix = (typeof SUFFIXES)[number]

export interface LogState {
  /** Frames in the log. */
  readonly log: number
  /** How many of them are in the database's own file. */
  readonly checkpointed: number
}

/** How often unlikely bytes are read before they count: SQLite may be writing them. */
const ATTEMPTS = 3

/** Milliseconds between two such reads of the database, which another process's checkpoint may be about to extend. */
const RETRY = 100
const PAUSE = new Int32Array(new SharedArrayBuffer(4))

const GONE = 'is not there any more'
const REPLACED = 'is another file than the one that was opened'

const lostProblem = (path: string, what: string, isShared: boolean): Problem => ({
  message:
    `the database file ${path} ${what}: whatever needs the database is refused (503). ` +
    'Put the file back where it was, or restart the service to use what is there now',
  isFinal: false,
  isShared,
})

const contentProblem = (path: string): Problem => ({
  message:
    `the database file ${path} has been overwritten: whatever needs the database is refused (503). Stop the service, put ` +
    'the database in its place that is to be used, remove -wal and -shm unless they belong to it, and start again',
  isFinal: true,
  isShared: false,
})

const diskProblem = (path: string): Problem => ({
  message:
    `the disk failed a checkpoint of the database file ${path}, and may have lost what an earlier one has written: whatever ` +
    `needs the database is refused (503). All of it is in ${path}-wal. Check the disk, and restart the service`,
  isFinal: true,
  isShared: false,
})

const idAt = (path: string): FileId | undefined => {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stat && idOf(stat)
}

/** The database at its path, held from before SQLite opens it until after it has closed it. */
export class OpenDatabaseFile {
  readonly #path: string
  readonly #held: HeldFile
  #walFd: number | null = null
  #isReleased = false

  /** @throws {Error} when there is no file. */
  constructor(path: string) {
    this.#path = resolve(path)
    this.#held = holdFile(this.#path)
  }

  /**
   * To be called when SQLite has it open and has read from it.
   * @throws {Error} when it is another file meanwhile.
   */
  opened(): OpenedFile {
    const real = realpathSync.native(this.#path)
    this.#walFd = openSync(`${real}-wal`, 'r')
    const { id } = this.#held
    const wal = idAt(`${real}-wal`)
    const shm = idAt(`${real}-shm`)
    if (idAt(real) !== id || wal === undefined || shm === undefined)
      throw new Error(`${this.#path} was replaced while it was opened`)
    const ids = { '': id, '-wal': wal, '-shm': shm }
    return { path: this.#path, fd: this.#held.fd, walFd: this.#walFd, ids }
  }

  /** To be called when SQLite has closed it. */
  release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    if (this.#walFd !== null) closeSync(this.#walFd)
    this.#held.release()
  }
}

/** What is wrong with where the files are. Some 4 µs. @returns `null` when all are as they were opened. */
export const pathProblem = ({ path, ids }: OpenedFile): Problem | null => {
  try {
    const real = realpathSync.native(path)
    const shm = idAt(`${real}-shm`)
    const found = { '': idAt(real), '-wal': idAt(`${real}-wal`), '-shm': shm }
    const lost = SUFFIXES.find(suffix => found[suffix] !== ids[suffix])
    if (lost === undefined) return null
    const isShared = shm !== undefined && shm !== ids['-shm']
    return lostProblem(path + lost, found[lost] === undefined ? GONE : REPLACED, isShared)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return lostProblem(path, code === 'ENOENT' ? GONE : `cannot be reached (${code})`, false)
  }
}

/**
 * What is wrong with what is in the files, for whoever writes and makes the checkpoints: what is seen first counts as right, and
 * from then on the database changes by checkpoints alone. Once something is wrong, it stays so.
 */
export class FileContent {
  readonly #file: OpenedFile
  readonly #pageSize: number
  readonly #readLogState: () => LogState
  #header: Buffer | undefined
  /** What the disk may have after a checkpoint that failed: perhaps none of it was kept. */
  #fallback: Buffer | undefined
  #size = 0
  #problem: Problem | null = null

  /** @param readLogState SQLite's account of the log; negative frames while another process writes the log's index. */
  constructor(file: OpenedFile, pageSize: number, readLogState: () => LogState) {
    this.#file = file
    this.#pageSize = pageSize
    this.#readLogState = readLogState
  }

  /** Some 3 µs. @returns `null` when it is what was written. */
  problem(): Problem | null {
    const { path } = this.#file
    if (!this.#isOwnDatabase()) this.#problem ??= contentProblem(path)
    else if (!this.#isOwnLog()) this.#problem ??= contentProblem(`${path}-wal`)
    return this.#problem
  }

  /**
   * Runs a checkpoint of this connection. One that fails is repeated, and writes its pages anew. But SQLite does not wait for
   * the disk with one that a reader kept from its end, and never writes those pages again: when the disk fails later, only a
   * restart, which begins at the start of the log, is sure to have them all.
   */
  checkpoint(run: () => void): void {
    const before = this.#header
    try {
      run()
      this.#fallback = undefined
    } catch (error) {
      this.#fallback ??= before
      const isDiskFailure = String((error as { code?: unknown }).code).startsWith('SQLITE_IOERR')
      if (isDiskFailure && this.#readLogState().checkpointed > 0)
        this.#problem ??= diskProblem(this.#file.path)
    }
  }

  #isOwnDatabase(): boolean {
    const { fd } = this.#file
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      if (attempt > 1) Atomics.wait(PAUSE, 0, 0, RETRY)
      const header = readBytes(fd, HEADER_SIZE, 0)
      if (header !== undefined && this.#accepts(header) && !this.#isCutShort(header)) return true
    }
    return false
  }

  #accepts(header: Buffer): boolean {
    const known = this.#header
    if (known === undefined || isLater(known, header)) this.#header = header
    else if (this.#fallback !== undefined && header.equals(this.#fallback)) this.#header = header
    else return false
    return true
  }

  /** A checkpoint writes the header before the pages that it makes room for, so only a file that has shrunk is judged by it. */
  #isCutShort(header: Buffer): boolean {
    const { size } = fstatSync(this.#file.fd)
    if (size < this.#size && size < sizeOf(header)) return true
    this.#size = size
    return false
  }

  /** What other processes write meanwhile shows in the number of frames. */
  #isOwnLog(): boolean {
    let frames = this.#readLogState().log
    for (let attempt = 1; frames !== 0 && attempt <= ATTEMPTS; attempt += 1) {
      if (frames > 0 && endsWithCommit(this.#file.walFd, frames, this.#pageSize)) return true
      const now = this.#readLogState().log
      if (now !== frames) attempt = 0
      frames = now
    }
    // Where another process is writing the index, the next look tells.
    return frames <= 0
  }
}

/**
 * A log beside a database that is not its own would be mixed into it: SQLite asks for no more than that it is whole. That
 * happens when a database is replaced while a service that has it open is killed, or has died before.
 * @throws {Error} that says what to do.
 */
export const assertOwnLog = (path: string): void => {
  const exists = existsSync(path)
  // SQLite follows links to the database's own folder.
  const real = exists ? realpathSync.native(path) : path
  const wal = `${real}-wal`
  if (!existsSync(wal)) return
  const walFd = openSync(wal, 'r')
  const held = exists ? holdFile(real) : null
  try {
    if (mayContinue(held === null ? undefined : readBytes(held.fd, HEADER_SIZE, 0), walFd)) return
    const message = exists
      ? `${wal} belongs to another database, or to another state of this one: remove it and ${real}-shm to use ${path} as it is`
      : `${path} is missing, but ${wal} is there: put it back, or remove ${wal} to begin with an empty database`
    throw Object.assign(new Error(message), { code: 'FOREIGN_LOG' })
  } finally {
    closeSync(walFd)
    held?.release()
  }
}
