import { createReadStream } from 'node:fs'
import { addAbortSignal, type Readable } from 'node:stream'
import type { Command } from 'commander'
import type { ImportResult, UserLine } from '../accounts/imports.ts'
import { serializeImportResult } from '../accounts/serializers.ts'
import { OPERATOR } from '../audit-log/event.ts'
import { ServiceError } from '../errors.ts'
import { readLines, toLines, type Validate } from '../validation/ndjson.ts'
import { explain, sentences, withFile } from './failure.ts'
import { type StoreOptions, storeCommand } from './options.ts'
import { count, print, tell, write } from './output.ts'
import { lineProgress, STOPPED, stopSignal } from './progress.ts'
import { withStore } from './store.ts'

/** Failed lines that people are told of. */
const TOLD = 20

/** What is read, until `stop`: also a pipe that stands still ends then. */
async function* chunksOf(file: string | undefined, stop: AbortSignal): AsyncGenerator<Buffer> {
  const source: Readable = file === undefined ? process.stdin : createReadStream(file)
  try {
    yield* addAbortSignal(stop, source)
  } catch (error) {
    throw stop.aborted ? new ServiceError('draining') : withFile(file ?? 'standard input', error)
  }
}

/** By the rules of the API, which are loaded for this command alone. */
const userLines = async (
  file: string | undefined,
  stop: AbortSignal,
): Promise<AsyncIterable<readonly UserLine[]>> => {
  const { ImportedUser } = await import('../validation/imported-user.ts')
  const { jsonValidator } = await import('../validation/validation.ts')
  const validate = jsonValidator(ImportedUser) as Validate
  return readLines(chunksOf(file, stop), validate) as AsyncIterable<readonly UserLine[]>
}

/** Tells people of the first lines that failed. */
const failureTeller = () => {
  let failures = 0
  return (result: ImportResult): void => {
    if (result.status !== 'failed') return
    failures += 1
    if (failures <= TOLD) tell(`Line ${result.line}: ${sentences(result.errors).join('; ')}`)
    if (failures === TOLD + 1) tell('More lines have failed: --json tells of each')
  }
}

type Ended = Extract<ImportResult, { status: 'finished' | 'stopped' }>

const isEnd = (result: ImportResult): result is Ended =>
  result.status === 'finished' || result.status === 'stopped'

const summary = ({ created, exists, failed }: Ended): string =>
  [
    `${count(created, 'user')} created`,
    `${count(exists, 'was', 'were')} there already`,
    `${count(failed, 'line')} failed`,
  ].join(', ')

const importUsers = (file: string | undefined, { json, ...options }: StoreOptions): Promise<void> =>
  withStore(options, async ({ imports }) => {
    const stop = stopSignal()
    const tellProgress = lineProgress()
    const tellFailure = failureTeller()
    const lines = await userLines(file, stop)
    let done = 0
    for await (const results of imports.run(lines, OPERATOR)) {
      if (json) await write(toLines(results.map(serializeImportResult)))
      else results.forEach(tellFailure)
      const end = results.find(isEnd)
      if (end === undefined) {
        done += results.length
        tellProgress(done)
        continue
      }
      if (!json) print(false, null, [summary(end)])
      if (end.status === 'stopped') tell(stop.aborted ? STOPPED : explain(end.error))
      if (end.status === 'stopped' || end.failed > 0) process.exitCode = 1
    }
  })

export const usersImport = (users: Command): void => {
  storeCommand(
    users,
    'import [file]',
    'Import users, one a line as an export writes them, from a file or from standard input',
  ).action(importUsers)
}
