/** A file of access tokens, one a line, for its owner alone: whoever has one is the user. */
import { closeSync, fchmodSync, openSync, writeSync } from 'node:fs'
import { AccessTokens } from '../auth/access-tokens.ts'
import { readSecret, signingKeys } from '../auth/signing-keys.ts'
import type { Config } from '../config/config.ts'
import type { SeedSession } from '../storage/seed.ts'
import { withFile } from './failure.ts'

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
