/** Newline-delimited JSON, read line by line at constant memory. */
import { isUtf8 } from 'node:buffer'
import { ServiceError } from '../errors.ts'
import { type FieldViolation, fieldErrors } from './field-errors.ts'
import { LineSplitter, type RawLine } from './line-splitter.ts'
import { parseStrictJson } from './strict-json.ts'

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
