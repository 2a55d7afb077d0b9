/** Writes files atomically, readable by their owner only. */
import { randomUUID } from 'node:crypto'
import { lstatSync } from 'node:fs'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { CommandError, FileError, fileErrorOf, type NamedFile } from '#feature/commands/failure'

/** The rename below would replace a device, a pipe or a link. */
const assertRegular = (file: NamedFile): void => {
  if (lstatSync(file.path, { throwIfNoEntry: false })?.isFile() === false)
    throw new FileError(file, 'a path that is not a regular file')
}

/** A file that replaces the one at its path when it is complete. Every function fails with an error that names the file. */
export class AtomicFile {
  readonly #file: NamedFile
  readonly #partial: string
  readonly #handle: FileHandle

  private constructor(file: NamedFile, partial: string, handle: FileHandle) {
    this.#file = file
    this.#partial = partial
    this.#handle = handle
  }

  /** @throws {CommandError} if the file cannot be written. */
  static async open(file: NamedFile): Promise<AtomicFile> {
    const partial = `${file.path}.${randomUUID()}.partial`
    try {
      assertRegular(file)
      return new AtomicFile(file, partial, await open(partial, 'wx', 0o600))
    } catch (error) {
      throw fileErrorOf(file, 'written', error)
    }
  }

  async write(text: string): Promise<void> {
    await this.#attempt(() => this.#handle.appendFile(text))
  }

  /** Writes the file to the disk, and replaces the one at its path. */
  async commit(): Promise<void> {
    await this.#attempt(async () => {
      await this.#handle.sync()
      await this.#handle.close()
      await rename(this.#partial, this.#file.path)
    })
  }

  /** Leaves the file at the path as it is. Does nothing after {@link commit}. */
  async discard(): Promise<void> {
    await this.#handle.close()
    await rm(this.#partial, { force: true })
  }

  async #attempt(action: () => Promise<void>): Promise<void> {
    try {
      await action()
    } catch (error) {
      throw fileErrorOf(this.#file, 'written', error)
    }
  }
}

/** @throws {CommandError} if it is aborted, or the file cannot be written; errors of `texts`. */
export const writeAtomically = async (
  file: NamedFile,
  texts: AsyncIterable<string>,
  signal: AbortSignal,
): Promise<void> => {
  const output = await AtomicFile.open(file)
  try {
    for await (const text of texts) {
      if (signal.aborted) break
      await output.write(text)
    }
    if (signal.aborted) throw new CommandError('Stopped before the end: nothing is written')
    await output.commit()
  } finally {
    await output.discard()
  }
}
