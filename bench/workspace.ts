/** The temporary folder of one scenario: its database, the secret of its tokens, and what the load generator reads. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Workspace {
  readonly folder: string
  readonly databaseFile: string
  readonly jwtSecret: string
  remove(): void
}

export const createWorkspace = (): Workspace => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'))
  // A server that is being killed may still add a file.
  const remove = () => {
    process.off('exit', remove)
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
  }
  // Also when the bench is interrupted.
  process.once('exit', remove)
  return {
    folder,
    databaseFile: join(folder, 'bench.db'),
    jwtSecret: randomBytes(48).toString('base64url'),
    remove,
  }
}
