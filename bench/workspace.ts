/** Temporary folders, gone with the bench, however that ends. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Location } from './processes.ts'

export const temporaryFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'))
  // A server that is being killed may still add a file.
  process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 }))
  return folder
}

export const createWorkspace = (): Location => ({
  databaseFile: join(temporaryFolder(), 'bench.db'),
  jwtSecret: randomBytes(48).toString('base64url'),
})
