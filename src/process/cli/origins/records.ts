/**
 * Reads the users of an export with constant memory: lines of JSON, a list in a JSON document, or CSV with a head. What comes first decides
 * which. A user that cannot be read is reported with its line, and the rest goes on.
 */
import { isUtf8 } from 'node:buffer'
import { Readable } from 'node:stream'
import { type CsvError, type Info, parse } from 'csv-parse'
import { ERRORS, type FieldErrors } from '#base/errors'
import { isBlank, LineSplitter, type RawLine } from '#http/validation/ndjson'
import type { Foreign } from './origin.ts'

/** Bytes of one user. Longer ones are reported. */
const MAX_RECORD = 1_048_576

/** A user, or what is wrong; `line` is where it begins, from 1. */
export type ForeignRecord = { readonly line: number } & (
  | { readonly record: Foreign; readonly errors?: undefined }
  | { readonly errors: FieldErrors }
)

const failed = (line: number, message: string): ForeignRecord => ({ line, errors: { global: [message] } })

/** @param bytes `null`: there were too many. */
const parsed = (line: number, bytes: Buffer | null): ForeignRecord => {
  if (bytes === null) return failed(line, `is longer than ${MAX_RECORD} bytes`)
  if (!isUtf8(bytes)) return failed(line, ERRORS.notUtf8.message)
  try {
    const record: unknown = JSON.parse(bytes.toString('utf8'))
    const isObject = typeof record === 'object' && record !== null && !Array.isArray(record)
    return isObject ? { line, record } : failed(line, 'is not an object')
  } catch {
    return failed(line, 'is not valid JSON')
  }
}

const [QUOTE, ESCAPE, COMMA, COLON, NEWLINE] = ['"', '\\', ',', ':', '\n'].map(text =>
  text.charCodeAt(0),
) as [number, number, number, number, number]
const OPENING = new Set([...'[{'].map(text => text.charCodeAt(0)))
const CLOSING = new Set([...']}'].map(text => text.charCodeAt(0)))
const isSpace = (byte: number): boolean => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d)

/** Splits a JSON document into the elements of one of its lists, byte by byte: UTF-8 has no byte of ASCII within a character. */
class ListSplitter {
  readonly #listIn: string | null
  /** Open brackets. */
  #depth = 0
  #isInText = false
  #isEscaped = false
  #line = 1
  /** The text that has ended last at depth one, and the one before a colon: the name of a property. */
  #text = ''
  #name = ''
  /** The depth within the list; 0 outside. */
  #listDepth = 0
  #element: number[] | null = []
  #elementLine = 1
  #isEmpty = true

  /** @param listIn the property of the document that has the list; `null`: the document is the list. */
  constructor(listIn: string | null) {
    this.#listIn = listIn
  }

  *push(chunk: Buffer): Generator<ForeignRecord> {
    for (const byte of chunk) {
      if (byte === NEWLINE) this.#line += 1
      const ended = this.#read(byte)
      if (ended !== null) yield ended
    }
  }

  /** What is left when the document has been cut. */
  *end(): Generator<ForeignRecord> {
    if (this.#listDepth > 0) yield failed(this.#line, 'the file ends within the list of users')
    else if (this.#listDepth === 0 && !this.hasList)
      yield failed(1, this.#listIn === null ? 'there is no list' : `there is no list named ${this.#listIn}`)
  }

  hasList = false

  #read(byte: number): ForeignRecord | null {
    const isInList = this.#listDepth > 0
    if (this.#isInText) {
      this.#readText(byte)
      if (isInList) this.#keep(byte)
      return null
    }
    if (byte === QUOTE) {
      this.#isInText = true
      this.#text = ''
    } else if (byte === COLON && this.#depth === 1) this.#name = this.#text
    if (OPENING.has(byte)) return this.#open(byte)
    if (CLOSING.has(byte)) return this.#close(byte)
    if (isInList && byte === COMMA && this.#depth === this.#listDepth) return this.#take()
    if (isInList && !(this.#isEmpty && isSpace(byte))) this.#keep(byte)
    return null
  }

  #readText(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false
    else if (byte === ESCAPE) this.#isEscaped = true
    else if (byte === QUOTE) this.#isInText = false
    else if (this.#depth === 1 && this.#text.length < 64) this.#text += String.fromCharCode(byte)
  }

  #open(byte: number): null {
    this.#depth += 1
    if (this.#listDepth > 0) this.#keep(byte)
    else if (byte === 0x5b && !this.hasList) {
      const isList =
        this.#listIn === null ? this.#depth === 1 : this.#depth === 2 && this.#name === this.#listIn
      if (!isList) return null
      this.hasList = true
      this.#listDepth = this.#depth
    }
    return null
  }

  #close(byte: number): ForeignRecord | null {
    const isEnd = this.#depth === this.#listDepth
    this.#depth -= 1
    if (this.#listDepth === 0) return null
    if (!isEnd) {
      this.#keep(byte)
      return null
    }
    this.#listDepth = 0
    return this.#isEmpty ? null : this.#take()
  }

  #keep(byte: number): void {
    if (this.#isEmpty) {
      this.#isEmpty = false
      this.#elementLine = this.#line
    }
    if (this.#element === null) return
    if (this.#element.length >= MAX_RECORD) this.#element = null
    else this.#element.push(byte)
  }

  #take(): ForeignRecord {
    const taken = parsed(this.#elementLine, this.#element && Buffer.from(this.#element))
    this.#element = []
    this.#isEmpty = true
    return taken
  }
}

/** Lines of JSON; blank ones are left out. */
async function* readLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<ForeignRecord> {
  const splitter = new LineSplitter(MAX_RECORD)
  const recordsOf = function* (lines: Iterable<RawLine>): Generator<ForeignRecord> {
    for (const each of lines) if (!isBlank(each)) yield parsed(each.line, each.bytes)
  }
  for await (const chunk of chunks) yield* recordsOf(splitter.push(chunk))
  yield* recordsOf(splitter.end())
}

async function* readList(
  chunks: AsyncIterable<Buffer>,
  listIn: string | null,
): AsyncGenerator<ForeignRecord> {
  const splitter = new ListSplitter(listIn)
  for await (const chunk of chunks) yield* splitter.push(chunk)
  yield* splitter.end()
}

async function* readTable(chunks: AsyncIterable<Buffer>): AsyncGenerator<ForeignRecord> {
  const skipped: ForeignRecord[] = []
  const rows = Readable.from(chunks).pipe(
    parse({
      columns: true,
      info: true,
      relax_quotes: true,
      skip_empty_lines: true,
      skip_records_with_error: true,
      max_record_size: MAX_RECORD,
      on_skip: (error: CsvError | undefined) => {
        skipped.push(failed(Number(error?.lines ?? 0), `is not a row of the table (${error?.code ?? 'CSV'})`))
      },
    }),
  )
  for await (const { record, info } of rows as AsyncIterable<{ record: Foreign; info: Info }>) {
    yield* skipped.splice(0)
    yield { line: info.lines, record }
  }
  yield* skipped
}

/** Everything again, with what was read of it to see what it is. */
async function* withFirst(first: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield first
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value
}

/** @param listIn see `Origin`. */
export async function* readRecords(
  chunks: AsyncIterable<Buffer>,
  listIn: string | undefined,
): AsyncGenerator<ForeignRecord> {
  const source = chunks[Symbol.asyncIterator]()
  let first = Buffer.alloc(0)
  for (let next = await source.next(); !next.done; next = await source.next()) {
    first = Buffer.concat([first, next.value])
    if (!first.every(isSpace)) break
  }
  const start = first.toString('latin1').trimStart().charAt(0)
  const all = withFirst(first, source)
  if (start === '') return
  if (start === '[') yield* readList(all, null)
  else if (start === '{') yield* listIn === undefined ? readLines(all) : readList(all, listIn)
  else yield* readTable(all)
}
