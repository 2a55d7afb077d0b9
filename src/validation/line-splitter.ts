import { BODY_LIMIT } from './body-limit.ts'

const NEWLINE = 0x0a
const NOTHING = Buffer.alloc(0)

export interface RawLine {
  /** From 1, blank lines included. */
  readonly line: number
  /** `null` of a line that is too long, of which nothing is kept. */
  readonly bytes: Buffer | null
}

/** Cuts chunks into lines, and keeps no more than one of them. */
export class LineSplitter {
  #line = 1
  /** The start of a line whose end has not come; `null` when it is too long already. */
  #start: Buffer | null = NOTHING;

  /** The lines that end in this chunk. */
  *push(chunk: Buffer): Generator<RawLine> {
    let from = 0
    for (;;) {
      const end = chunk.indexOf(NEWLINE, from)
      if (end === -1) break
      this.#append(chunk.subarray(from, end))
      yield this.#take()
      from = end + 1
    }
    this.#append(chunk.subarray(from))
  }

  /** The last line, which nothing ends; none behind a newline. */
  *end(): Generator<RawLine> {
    if (this.#start?.length !== 0) yield this.#take()
  }

  /** Copies: a slice would keep the whole chunk. */
  #append(bytes: Buffer): void {
    if (this.#start === null) return
    const tooLong = this.#start.length + bytes.length > BODY_LIMIT
    this.#start = tooLong ? null : Buffer.concat([this.#start, bytes])
  }

  #take(): RawLine {
    const taken = { line: this.#line, bytes: this.#start }
    this.#line += 1
    this.#start = NOTHING
    return taken
  }
}
