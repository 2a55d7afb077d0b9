import { isUtf8 } from 'node:buffer'
import { ServiceError } from '../errors.ts'
import { BODY_LIMIT, parseStrictJson } from './strict-json.ts'
import { type FieldViolation, fieldErrors } from './validation.ts'

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

/** Newline-delimited JSON, read line by line at constant memory. */

/** Lines that are handed on together at most: what is made of them is one write, which others wait for. */
const MAX_BATCH = 200

/** As a body's schema is compiled. It may change what it validates. */
export interface Validate {
  (value: unknown): boolean
  errors?: readonly FieldViolation[] | null
}

/** A line that is what the schema asks for, or what is wrong with it, as in the error body (§7.1). */
export type Line<Value> = { readonly line: number } & (
  | { readonly value: Value; readonly errors?: undefined }
  | { readonly errors: Readonly<Record<string, readonly string[]>> }
)

const parse = (bytes: Buffer | null): unknown => {
  if (bytes === null) throw new ServiceError('bodyTooLarge')
  if (!isUtf8(bytes)) throw new ServiceError('notUtf8')
  return parseStrictJson(bytes.toString('utf8'))
}

const read = ({ line, bytes }: RawLine, validate: Validate): Line<unknown> => {
  try {
    const value = parse(bytes)
    return validate(value) ? { line, value } : { line, errors: fieldErrors(validate.errors ?? []) }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return { line, errors: { [error.field]: [error.message] } }
  }
}

const isBlank = ({ bytes }: RawLine): boolean => bytes !== null && /^[ \t\r]*$/.test(bytes.toString('latin1'))

function* batchesOf(lines: Iterable<RawLine>, validate: Validate): Generator<readonly Line<unknown>[]> {
  let batch: Line<unknown>[] = []
  for (const line of lines) {
    if (!isBlank(line)) batch.push(read(line, validate))
    if (batch.length < MAX_BATCH) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

/** Lines in their order, those that have arrived together in one batch; blank ones are left out. */
export async function* readLines(
  chunks: AsyncIterable<Buffer>,
  validate: Validate,
): AsyncGenerator<readonly Line<unknown>[]> {
  const splitter = new LineSplitter()
  for await (const chunk of chunks) yield* batchesOf(splitter.push(chunk), validate)
  yield* batchesOf(splitter.end(), validate)
}

/** The lines that {@link readLines} reads. */
export const toLines = (values: readonly object[]): string =>
  values.map(value => `${JSON.stringify(value)}\n`).join('')
