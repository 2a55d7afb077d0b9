/** Newline-delimited JSON: reads any number of lines with constant memory. For request bodies and files of the command line. */
import { isUtf8 } from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import { type FieldErrors, ServiceError } from '#base/errors'
import { type FieldViolation, fieldErrors } from './field-errors.ts'
import { parseStrictJson } from './strict-json.ts'

export const NDJSON = 'application/x-ndjson'

/** Maximum bytes of a line: both kinds of metadata at their limit, the rest of a user, and the longest credentials. */
export const LINE_LIMIT = 98_304

const NEWLINE = 0x0a
const EMPTY = Buffer.alloc(0)

export interface RawLine {
  /** From 1, counting blank lines. */
  readonly line: number
  /** `null` if the line is too long. */
  readonly bytes: Buffer | null
}

/** Splits chunks into lines. Buffers at most one line of at most `limit` bytes. */
export class LineSplitter {
  readonly #limit: number
  #line = 1
  /** The start of an unfinished line; `null` if it is already too long. */
  #start: Buffer | null = EMPTY

  constructor(limit = LINE_LIMIT) {
    this.#limit = limit
  }

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

  /** The last line, if it does not end with a newline. */
  *end(): Generator<RawLine> {
    if (this.#start?.length !== 0) yield this.#take()
  }

  /** Copies, because a slice would keep the whole chunk in memory. */
  #append(bytes: Buffer): void {
    if (this.#start === null) return
    const tooLong = this.#start.length + bytes.length > this.#limit
    this.#start = tooLong ? null : Buffer.concat([this.#start, bytes])
  }

  #take(): RawLine {
    const taken = { line: this.#line, bytes: this.#start }
    this.#line += 1
    this.#start = EMPTY
    return taken
  }
}

/** Maximum lines in a batch. A batch becomes one write, which delays other writes. */
const MAX_BATCH = 200

/** A compiled schema. It may change the value: normalization, defaults. */
export interface Validate {
  (value: unknown): boolean
  errors?: readonly FieldViolation[] | null
}

/** A valid line, or its errors in the form of the error body (§7.1). */
export type Line<Value> = { readonly line: number } & (
  | { readonly value: Value; readonly errors?: undefined }
  | { readonly errors: FieldErrors }
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

export const isBlank = ({ bytes }: RawLine): boolean =>
  bytes !== null && /^[ \t\r]*$/.test(bytes.toString('latin1'))

/** Milliseconds of reading after which the event loop serves other requests: a chunk can be a whole file of lines that all fail. */
const SLICE = 10

async function* batchesOf(
  lines: Iterable<RawLine>,
  validate: Validate,
): AsyncGenerator<readonly Line<unknown>[]> {
  let batch: Line<unknown>[] = []
  let turnEnds = performance.now() + SLICE
  for (const line of lines) {
    if (performance.now() > turnEnds) {
      await setImmediate()
      turnEnds = performance.now() + SLICE
    }
    if (!isBlank(line)) batch.push(read(line, validate))
    if (batch.length < MAX_BATCH) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

/** Yields the lines in order, without blank ones; lines that arrived together are in one batch. */
export async function* readLines(
  chunks: AsyncIterable<Buffer>,
  validate: Validate,
): AsyncGenerator<readonly Line<unknown>[]> {
  const splitter = new LineSplitter()
  for await (const chunk of chunks) yield* batchesOf(splitter.push(chunk), validate)
  yield* batchesOf(splitter.end(), validate)
}

export const toLines = (values: readonly object[]): string =>
  values.map(value => `${JSON.stringify(value)}\n`).join('')
