/** `users import --from`: the users of another system as lines of an import. */
import type { UserLine } from '#core/accounts/bulk-users'
import { CommandError, type NamedFile, UsageError } from '#feature/commands/failure'
import { fieldErrors } from '#http/validation/field-errors'
import type { Validate } from '#http/validation/ndjson'
import { inputChunks } from '../input.ts'
import { type Origin, OriginError, type OriginFiles } from './origin.ts'
import { type ForeignRecord, readRecords } from './records.ts'

/** As many as one batch of an import has. */
const MAX_BATCH = 200

/** Bytes of `--hash-parameters`. */
const MAX_PARAMETERS = 65_536

export interface OriginOptions {
  readonly hashes?: string
  readonly hashParameters?: string
}

const readText = async (file: NamedFile, stop: AbortSignal): Promise<string> => {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of inputChunks(file, stop)) {
    chunks.push(chunk)
    length += chunk.length
    if (length > MAX_PARAMETERS)
      throw new CommandError(`${file.namedBy} has more than ${MAX_PARAMETERS} bytes`)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** The hashes of `--hashes`, by the ids of users. All are in memory: about 150 bytes for each user. */
const readHashes = async (
  file: NamedFile,
  { hashIn }: Origin,
  stop: AbortSignal,
): Promise<ReadonlyMap<string, string>> => {
  const hashes = new Map<string, string>()
  for await (const each of readRecords(inputChunks(file, stop), undefined)) {
    if (each.errors !== undefined)
      throw new CommandError(
        `${file.namedBy}, line ${each.line}: ${Object.values(each.errors).flat().join('; ')}`,
      )
    const [id, hash] = hashIn?.(each.record) ?? []
    if (id !== undefined && hash !== undefined) hashes.set(id, hash)
  }
  return hashes
}

/** @throws {UsageError} for a file that the origin does not have; {CommandError} if it cannot be read */
const filesOf = async (
  origin: Origin,
  { hashes, hashParameters }: OriginOptions,
  stop: AbortSignal,
): Promise<OriginFiles> => {
  if (hashes !== undefined && origin.hashIn === undefined)
    throw new UsageError(`--hashes: ${origin.title} has no file of hashes`)
  if (hashParameters !== undefined && !origin.needsParameters)
    throw new UsageError(`--hash-parameters: ${origin.title} has none`)
  const found =
    hashes === undefined ? null : await readHashes({ namedBy: '--hashes', path: hashes }, origin, stop)
  const parameters =
    hashParameters === undefined
      ? null
      : await readText({ namedBy: '--hash-parameters', path: hashParameters }, stop)
  return { hashOf: id => found?.get(id), parameters }
}

/** What was left out, and of how many users. */
export type LeftOut = Map<string, number>

/**
 * Maps and checks the users of an export.
 * @param file `null` for standard input. @param validate the schema of a line of an import. @param leftOut is filled.
 * @returns batches for an import. @throws {UsageError}; {CommandError} if a file is not one of the origin
 */
export const foreignUserLines = async (
  origin: Origin,
  file: NamedFile | null,
  options: OriginOptions,
  {
    validate,
    leftOut,
    stop,
  }: { readonly validate: Validate; readonly leftOut: LeftOut; readonly stop: AbortSignal },
): Promise<AsyncIterable<readonly UserLine[]>> => {
  const files = await filesOf(origin, options, stop)
  const map = (() => {
    try {
      return origin.mapper(files)
    } catch (error) {
      throw error instanceof OriginError ? new CommandError(error.message) : error
    }
  })()
  const lineOf = (each: ForeignRecord): UserLine => {
    const { line } = each
    if (each.errors !== undefined) return { line, errors: each.errors }
    const result = map(each.record)
    if ('errors' in result) return { line, errors: result.errors }
    const { user } = result
    if (!validate(user)) return { line, errors: fieldErrors(validate.errors ?? []) }
    for (const name of result.leftOut) leftOut.set(name, (leftOut.get(name) ?? 0) + 1)
    return { line, value: user as unknown as Extract<UserLine, { errors?: undefined }>['value'] }
  }
  return (async function* batches() {
    let batch: UserLine[] = []
    for await (const each of readRecords(inputChunks(file, stop), origin.listIn)) {
      batch.push(lineOf(each))
      if (batch.length < MAX_BATCH) continue
      yield batch
      batch = []
    }
    if (batch.length > 0) yield batch
  })()
}
