/** The format of Server-Sent Events (https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation). */

/** What an empty line of a stream ends. */
export interface Block {
  /** The last `id` of the stream, also from an earlier block; '' before the first one. */
  readonly id: string
  /** `null` for a block without an event. */
  readonly data: string | null
}

/** Characters of one block. A stream without line ends must not fill the memory. An event of the service has far fewer. */
const MAX_BLOCK = 1_048_576

/** A CRLF that two chunks split ends one line: the LF at the start of the second chunk is skipped. */
const LINE_END = /\r\n|\n|\r/g

/** Reads one stream, in chunks that end anywhere. A byte order mark is the decoder's to remove. */
export class EventStreamParser {
  /** Milliseconds after which the service wants clients to connect again; `undefined` if it has not said. */
  retry: number | undefined
  #id = ''
  #data = ''
  /** The beginning of a line, of which the rest is to come. */
  #rest = ''
  #endsWithCr = false

  /** The blocks that a chunk completes. @throws {Error} for one of more than a million characters. */
  blocks(chunk: string): Block[] {
    const text = this.#endsWithCr && chunk.startsWith('\n') ? chunk.slice(1) : chunk
    if (chunk !== '') this.#endsWithCr = chunk.endsWith('\r')
    const lines = text.split(LINE_END)
    // Only what is new is searched: a long line would take time in proportion to the square of its length.
    lines[0] = `${this.#rest}${lines[0]}`
    this.#rest = lines.pop() ?? ''
    const blocks = lines.flatMap(line => this.#take(line))
    if (this.#rest.length + this.#data.length > MAX_BLOCK)
      throw new Error(`An event is longer than ${MAX_BLOCK} characters`)
    return blocks
  }

  #take(line: string): Block[] {
    if (line === '') return [this.#endBlock()]
    const colon = line.indexOf(':')
    // A comment begins with the colon: a field without a name, which nobody knows.
    const field = colon < 0 ? line : line.slice(0, colon)
    this.#set(field, colon < 0 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1)))
    return []
  }

  #set(field: string, value: string): void {
    if (field === 'data') this.#data += `${value}\n`
    else if (field === 'id' && !value.includes('\0')) this.#id = value
    else if (field === 'retry' && /^\d+$/.test(value)) this.retry = Number(value)
  }

  #endBlock(): Block {
    const data = this.#data === '' ? null : this.#data.slice(0, -1)
    this.#data = ''
    return { id: this.#id, data }
  }
}
