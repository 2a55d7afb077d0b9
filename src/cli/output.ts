/** What commands write: results on standard output, everything else on standard error. */
import { once } from 'node:events'

export const tell = (line: string): void => void process.stderr.write(`${line}\n`)

/** @param plural where it is not the noun with an s. */
export const count = (number: number, noun: string, plural = `${noun}s`): string =>
  `${number.toLocaleString('en')} ${number === 1 ? noun : plural}`

/** What moves the cursor, ends a line or turns the direction of writing: users choose their names, not the operator's screen. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

export const printable = (text: string): string => text.replaceAll(UNPRINTABLE, '\ufffd')

/** Cells in columns. The last one is not padded: names belong there, whose width on a screen nobody knows. */
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

/** A result: lines for people, or what the HTTP API answers as one line of JSON. */
export const print = (json: boolean | undefined, result: unknown, lines: readonly string[]): void => {
  const written = json ? [JSON.stringify(result)] : lines
  process.stdout.write(written.map(line => `${line}\n`).join(''))
}

/** A result that comes by and by, as fast as it is read. */
export const write = async (text: string): Promise<void> => {
  if (!process.stdout.write(text)) await once(process.stdout, 'drain')
}

/** Whoever reads standard output may stop before its end, as `head` does: that is the end of the command, and no news. */
export const endWithReader = (): void => {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') tell(error.message)
    process.exit(1)
  })
}

/** What commands that take a while have in common: lines of progress, and an end by signal. */

/** Milliseconds between two lines of progress. */
const INTERVAL = 1_000

const throttled = () => {
  let last = 0
  return (line: string, always: boolean): void => {
    if (!always && Date.now() - last < INTERVAL) return
    last = Date.now()
    tell(line)
  }
}

export const progress = () => {
  const tellNow = throttled()
  return (done: number, total: number): void =>
    tellNow(`${done.toLocaleString('en')} of ${total.toLocaleString('en')} users`, done >= total)
}

/** Of lines, whose number shows when they end. */
export const lineProgress = () => {
  const tellNow = throttled()
  return (done: number): void => tellNow(count(done, 'line'), false)
}

/** A terminal's Ctrl-C arrives twice under npm, which passes it on: so the second one ends nothing either. */
export const stopSignal = (message = 'Stopping after the users that are being written'): AbortSignal => {
  const stop = new AbortController()
  const onSignal = (): void => {
    if (!stop.signal.aborted) tell(message)
    stop.abort()
  }
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal)
  return stop.signal
}

export const STOPPED = 'Stopped before the end: run it again, and it does what is missing'
