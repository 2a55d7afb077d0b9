/** A file for its owner alone, there whole or not at all. */
import { randomUUID } from 'node:crypto'
import { closeSync, fchmodSync, lstatSync, openSync, writeSync } from 'node:fs'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { AccessTokens } from '../auth/access-tokens.ts'
import { readSecret } from '../auth/secret-file.ts'
import { signingKeys } from '../auth/signing-keys.ts'
import type { Config } from '../config/config.ts'
import type { SeedSession } from '../storage/seed.ts'
import { Refusal, withFile } from './failure.ts'

/** What would be replaced by a file: a device, a pipe, or a link. */
const assertPlain = (file: string): void => {
  if (lstatSync(file, { throwIfNoEntry: false })?.isFile() === false)
    throw new Refusal('There is something else of that name, which is no plain file')
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
  assertPlain(file)
  const partial = `${file}.${randomUUID()}.partial`
  const handle = await open(partial, 'wx', 0o600)
  try {
    await fill(handle, texts, signal)
    await rename(partial, file)
  } catch (error) {
    await rm(partial, { force: true })
    throw signal.aborted ? new Refusal('Stopped before the end: nothing is written') : error
  }
}

/** @throws {Refusal} when it is stopped, must not be written or cannot be; whatever `texts` throws. */
export const writeWhole = async (
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

/** A file of access tokens, one a line, for its owner alone: whoever has one is the user. */

export interface TokenFile {
  /** Signs with the service's own secret. */
  write(sessions: readonly SeedSession[]): void
  close(): void
}

const openFile = (file: string): number => {
  try {
    return openSync(file, 'w', 0o600)
  } catch (error) {
    throw withFile(file, error)
  }
}

/** @throws {Error} when the file cannot be written, or the service's secret cannot be read. */
export const createTokenFile = (file: string, config: Config): TokenFile => {
  const tokens = new AccessTokens(signingKeys(readSecret(config.jwtSecret), config.jwtPreviousSecret))
  const handle = openFile(file)
  // One that was there keeps its mode.
  fchmodSync(handle, 0o600)
  return {
    write: sessions => void writeSync(handle, sessions.map(session => `${tokens.issue(session)}\n`).join('')),
    close: () => closeSync(handle),
  }
}
