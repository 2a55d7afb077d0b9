/** The output of commands: results on standard output, progress and errors on standard error. */
import { once } from 'node:events'

export const printStatus = (line: string): void => void process.stderr.write(`${line}\n`)

/** A number with separators of thousands. */
export const formatNumber = (number: number): string => number.toLocaleString('en')

/** @param plural by default the noun with an `s`. */
export const count = (number: number, noun: string, plural = `${noun}s`): string =>
  `${formatNumber(number)} ${number === 1 ? noun : plural}`

/** Control characters, line breaks and changes of text direction: names of users must not affect the terminal. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

export const printable = (text: string): string => text.replaceAll(UNPRINTABLE, '\ufffd')

/** Aligns cells in columns, except for the last: it holds names, whose width on a terminal is unknown. */
export const table = (rows: readonly (readonly string[])[]): string[] => {
  const cells = rows.map(row => row.map(printable))
  const widths = (cells[0] ?? []).map((_, column) =>
    Math.max(...cells.map(row => (row[column] ?? '').length)),
  )
  return cells.map(row =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
      .join('  ')
      .trimEnd(),
  )
}

/** Prints a result as text, or as one line of JSON like the HTTP API. */
export const print = (json: boolean | undefined, result: unknown, lines: readonly string[]): void => {
  const written = json ? [JSON.stringify(result)] : lines
  process.stdout.write(written.map(line => `${line}\n`).join(''))
}

/** How to ask for the next page of a list, if there is one. */
export const printNext = (nextCursor: string | null): void => {
  if (nextCursor !== null) printStatus(`The next page: --cursor ${nextCursor}`)
}

/** Writes a part of a streamed result. Resolves when more can be written. */
export const write = async (text: string): Promise<void> => {
  if (!process.stdout.write(text)) await once(process.stdout, 'drain')
}

/** Ends the command silently when the reader of standard output closes it, as `head` does. */
export const exitOnBrokenPipe = (): void => {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') printStatus(error.message)
    process.exit(1)
  })
}

/** Milliseconds between two lines of progress. */
const INTERVAL = 1_000

const throttled = () => {
  let last = 0
  return (line: string, always: boolean): void => {
    if (!always && Date.now() - last < INTERVAL) return
    last = Date.now()
    printStatus(line)
  }
}

/** Reports the progress of a known number of users, or of something else. */
export const progress = (noun = 'users') => {
  const report = throttled()
  return (done: number, total: number): void =>
    report(`${formatNumber(done)} of ${formatNumber(total)} ${noun}`, done >= total)
}

/** Reports the progress of an unknown number of lines, or of something else. */
export const countProgress = (noun = 'line') => {
  const report = throttled()
  return (done: number): void => report(count(done, noun), false)
}

/** Aborted by SIGINT or SIGTERM. A repeated signal does nothing more, because npm passes on a terminal's Ctrl-C a second time. */
export const stopSignal = (message = 'Stopping after the current batch'): AbortSignal => {
  const stop = new AbortController()
  const onSignal = (): void => {
    if (!stop.signal.aborted) printStatus(message)
    stop.abort()
  }
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal)
  return stop.signal
}

export const STOPPED = 'Stopped before the end: run it again to continue'
