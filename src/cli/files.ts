/** Writes a file atomically, readable by its owner only. */
import { randomUUID } from 'node:crypto'
import { lstatSync } from 'node:fs'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { CommandError, withFile } from './failure.ts'

/** The rename below would replace a device, a pipe or a link. */
const assertRegular = (file: string): void => {
  if (lstatSync(file, { throwIfNoEntry: false })?.isFile() === false)
    throw new CommandError('The path exists and is not a regular file')
}

const fill = async (handle: FileHandle, texts: AsyncIterable<string>, signal: AbortSignal): Promise<void> => {
  try {
    await handle.writeFile(texts, { signal })
    signal.throwIfAborted()
    await handle.sync()
  } finally {
    await handle.close()
  }
}

const write = async (file: string, texts: AsyncIterable<string>, signal: AbortSignal): Promise<void> => {
  assertRegular(file)
  const partial = `${file}.${randomUUID()}.partial`
  const handle = await open(partial, 'wx', 0o600)
  try {
    await fill(handle, texts, signal)
    await rename(partial, file)
  } catch (error) {
    await rm(partial, { force: true })
    throw signal.aborted ? new CommandError('Stopped before the end: nothing is written') : error
  }
}

/** @throws {CommandError} if it is aborted, or the file cannot be written; errors of `texts`. */
export const writeAtomically = async (
  file: string,
  texts: AsyncIterable<string>,
  signal: AbortSignal,
): Promise<void> => {
  try {
    await write(file, texts, signal)
  } catch (error) {
    throw withFile(file, error)
  }
}
