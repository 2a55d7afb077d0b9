/** What commands read from files and standard input: UTF-8, with or without a byte order mark. */
import { createReadStream } from 'node:fs'
import { addAbortSignal, type Readable } from 'node:stream'
import { ServiceError } from '#base/errors'
import { EncodingError, MARK_LENGTH, withoutMark } from '#base/text-encoding'
import {
  CommandError,
  FileError,
  fileErrorOf,
  type NamedFile,
  systemReasonOf,
} from '#feature/commands/failure'
import { LineSplitter } from '#http/validation/ndjson'

/** Waits for as many bytes as a byte order mark has, and drops it. @throws {EncodingError} for that of UTF-16 */
async function* withoutMarkBefore(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let start: Buffer | null = Buffer.alloc(0)
  for await (const chunk of chunks) {
    if (start === null) {
      yield chunk
      continue
    }
    start = Buffer.concat([start, chunk])
    if (start.length < MARK_LENGTH) continue
    yield withoutMark(start)
    start = null
  }
  if (start !== null) yield withoutMark(start)
}

/** A sentence instead of an error of a system call or of the encoding. */
const inputError = (file: NamedFile | null, error: unknown): unknown => {
  if (error instanceof EncodingError)
    return file === null
      ? new CommandError(`Standard input ${error.message}`)
      : new FileError(file, `a file that ${error.message}`)
  if (file !== null) return fileErrorOf(file, 'read', error)
  const reason = systemReasonOf(error)
  return reason === null ? error : new CommandError(`Standard input cannot be read (${reason})`)
}

/**
 * The chunks of a text.
 * @param file `null` for standard input.
 * @param stop also ends a pipe that has stalled.
 * @throws {CommandError} if it cannot be read or is in UTF-16; {ServiceError} `draining` after `stop`
 */
export async function* inputChunks(file: NamedFile | null, stop?: AbortSignal): AsyncGenerator<Buffer> {
  const source: Readable = file === null ? process.stdin : createReadStream(file.path)
  try {
    yield* withoutMarkBefore(stop === undefined ? source : addAbortSignal(stop, source))
  } catch (error) {
    throw stop?.aborted ? new ServiceError('draining') : inputError(file, error)
  }
}

/** The first line of standard input; `null` if it is too long. Does not wait for the rest. */
export const firstInputLine = async (): Promise<Buffer | null> => {
  const splitter = new LineSplitter()
  for await (const chunk of inputChunks(null)) for (const { bytes } of splitter.push(chunk)) return bytes
  for (const { bytes } of splitter.end()) return bytes
  return Buffer.alloc(0)
}
