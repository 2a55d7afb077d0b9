/**
 * Writes log lines to a file descriptor without ever blocking or failing, even if nothing reads it. Lines are buffered in
 * memory up to a bound; lines beyond it, and lines whose write fails, are dropped and counted.
 */
import { write } from 'node:fs'
import type { DestinationStream } from 'pino'

const MAX_WAITING = 4 * 1_048_576

/**
 * Maximum bytes of one write, unless a single line is longer. A pipe takes writes of this size (PIPE_BUF) atomically, so
 * neither the end of the process nor another writer of the same pipe splits a line.
 */
const MAX_BATCH = 4_096

/** Milliseconds between attempts to write to a full pipe: first and maximum delay. */
const FIRST_RETRY = 5
const LAST_RETRY = 100

/** Milliseconds from a failed write to the next attempt. */
const ERROR_PAUSE = 1_000

/** Maximum milliseconds to write the last lines when the process ends. */
const DRAIN_LIMIT = 1_000

const NEWLINE = 0x0a

export interface LogOutputOptions {
  /** Called before the first write. @returns a descriptor, which is non-blocking if it is a pipe or a socket. */
  readonly open: () => number
  /** @returns a log line, with its newline, that reports the number of dropped lines. */
  readonly countLine: (dropped: number) => string
  /** Formats each line before it is written. */
  readonly format?: (line: string) => string
}

interface Batch {
  readonly bytes: Buffer
  readonly lines: number
  readonly reported: number
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
  #dropped = 0
  #batch: Batch | null = null
  /** Delays the next write after a failed one. */
  #pause: NodeJS.Timeout | null = null
  /** Whether the output ends in the middle of a line. */
  #isCut = false
  /** Called when all lines are written, or a write has failed. */
  #onEnd: () => void = () => undefined

  constructor(options: LogOutputOptions) {
    this.#options = options
  }

  /** Queues a line, which ends with a newline. Returns at once and never throws. */
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

  /** Waits until all lines are written or a write fails, at most {@link DRAIN_LIMIT}. For the end of the process. */
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
    const dropped = this.#dropped
    const count = dropped === 0 ? '' : this.#format(this.#options.countLine(dropped))
    const lines = this.#take(MAX_BATCH - count.length)
    if (lines.length === 0 && dropped === 0) {
      this.#onEnd()
      return
    }
    const text = `${this.#isCut ? '\n' : ''}${lines.join('')}${count}`
    this.#batch = { bytes: Buffer.from(text), lines: lines.length, reported: dropped, written: 0 }
    this.#writeBatch(this.#batch, FIRST_RETRY)
  }

  /** Takes buffered lines of at most so many bytes, but at least one. */
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

  #succeed({ reported }: Batch): void {
    this.#batch = null
    this.#dropped -= reported
    this.#isCut = false
    this.#writeNext()
  }

  #fail({ bytes, lines, written }: Batch): void {
    const end = this.#isCut ? 1 : 0
    // A formatted line may contain newlines: the difference can be negative.
    this.#dropped += Math.max(0, lines - newlinesIn(bytes.subarray(end, written)))
    if (written > 0) this.#isCut = bytes[written - 1] !== NEWLINE
    this.#batch = null
    this.#pause = setTimeout(() => this.#writeNext(), ERROR_PAUSE).unref()
    this.#onEnd()
  }
}
