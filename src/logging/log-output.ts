/**
 * Where log lines go: a file descriptor that may be full, closed or not read. Nothing waits for it and nothing fails with
 * it: lines wait in memory, up to a bound, and those that do not fit or meet an error are dropped and counted.
 */
import { write } from 'node:fs'
import type { DestinationStream } from 'pino'

/** Bytes of log lines that wait for a slow reader. */
const MAX_WAITING = 4 * 1_048_576

/**
 * Bytes of one write, unless a single line is longer: what a pipe takes as a whole or not at all (PIPE_BUF), so that no
 * line is cut in two when the process ends, nor by another process that writes to the same pipe.
 */
const MAX_BATCH = 4_096

/** Milliseconds until a pipe that was full is tried again: the first time, and at most. */
const FIRST_RETRY = 5
const LAST_RETRY = 100

/** Milliseconds until another write is tried after one that failed. */
const ERROR_PAUSE = 1_000

/** Milliseconds that the last lines may take when the process ends. */
const DRAIN_LIMIT = 1_000

const NEWLINE = 0x0a

export interface LogOutputOptions {
  /** Called with the first line. @returns a descriptor to which a write does not wait, where it is a pipe or a socket. */
  readonly open: () => number
  /** A line that says how many were dropped, with its newline. */
  readonly countLine: (dropped: number) => string
  /** What is written in place of each line. */
  readonly format?: (line: string) => string
}

interface Batch {
  readonly bytes: Buffer
  /** Lines that are lost if it is not written. */
  readonly lines: number
  /** Dropped lines that it tells of. */
  readonly told: number
  written: number
}

const newlinesIn = (bytes: Buffer): number => {
  let count = 0
  for (const byte of bytes) if (byte === NEWLINE) count += 1
  return count
}

export class LogOutput implements DestinationStream {
  readonly #options: LogOutputOptions
  #fd: number | null = null
  #waiting: { line: string; bytes: number }[] = []
  #waitingBytes = 0
  /** Lines that were dropped and not told of yet. */
  #dropped = 0
  /** What is being written. */
  #batch: Batch | null = null
  /** Until the next write, after one that failed. */
  #pause: NodeJS.Timeout | null = null
  /** Whether the last byte that was written is amid a line. */
  #isCut = false
  /** Told when nothing waits any more, or a write has failed. */
  #onEnd: () => void = () => undefined

  constructor(options: LogOutputOptions) {
    this.#options = options
  }

  /** Takes a line with its newline. Returns at once and never throws. */
  write(line: string): void {
    const text = this.#format(line)
    const bytes = Buffer.byteLength(text)
    if (this.#waitingBytes + bytes > MAX_WAITING) {
      this.#dropped += 1
      return
    }
    this.#waiting.push({ line: text, bytes })
    this.#waitingBytes += bytes
    if (this.#batch === null && this.#pause === null) this.#writeNext()
  }

  /** Waits until all is written or output fails, at most a second. For the end of the process. */
  async drain(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onEnd = resolve
    if (this.#batch === null) this.#writeNext()
    const timer = setTimeout(resolve, DRAIN_LIMIT)
    await promise
    clearTimeout(timer)
  }

  #format(line: string): string {
    return this.#options.format?.(line) ?? line
  }

  #writeNext(): void {
    if (this.#pause !== null) clearTimeout(this.#pause)
    this.#pause = null
    const told = this.#dropped
    const count = told === 0 ? '' : this.#format(this.#options.countLine(told))
    const lines = this.#take(MAX_BATCH - count.length)
    if (lines.length === 0 && told === 0) {
      this.#onEnd()
      return
    }
    const text = `${this.#isCut ? '\n' : ''}${lines.join('')}${count}`
    this.#batch = { bytes: Buffer.from(text), lines: lines.length, told, written: 0 }
    this.#writeBatch(this.#batch, FIRST_RETRY)
  }

  /** As many of the lines that wait as have so many bytes, one at least. */
  #take(bytes: number): string[] {
    let count = 0
    let size = 0
    for (const line of this.#waiting) {
      if (count > 0 && size + line.bytes > bytes) break
      size += line.bytes
      count += 1
    }
    this.#waitingBytes -= size
    return this.#waiting.splice(0, count).map(({ line }) => line)
  }

  #writeBatch(batch: Batch, retry: number): void {
    const { bytes, written } = batch
    try {
      this.#fd ??= this.#options.open()
    } catch {
      this.#fail(batch)
      return
    }
    write(this.#fd, bytes, written, bytes.length - written, null, (error, count) => {
      if (error?.code === 'EAGAIN') {
        setTimeout(() => this.#writeBatch(batch, Math.min(retry * 2, LAST_RETRY)), retry).unref()
        return
      }
      if (error) {
        this.#fail(batch)
        return
      }
      batch.written += count
      if (batch.written < bytes.length) this.#writeBatch(batch, FIRST_RETRY)
      else this.#succeed(batch)
    })
  }

  #succeed({ told }: Batch): void {
    this.#batch = null
    this.#dropped -= told
    this.#isCut = false
    this.#writeNext()
  }

  #fail({ bytes, lines, written }: Batch): void {
    const end = this.#isCut ? 1 : 0
    // A line for people can have newlines of its own.
    this.#dropped += Math.max(0, lines - newlinesIn(bytes.subarray(end, written)))
    if (written > 0) this.#isCut = bytes[written - 1] !== NEWLINE
    this.#batch = null
    this.#pause = setTimeout(() => this.#writeNext(), ERROR_PAUSE).unref()
    this.#onEnd()
  }
}
