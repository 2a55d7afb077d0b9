/** Temporary folders, removed when the bench exits. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

let workspace: string | null = null

const createWorkspace = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'))
  // Retries, because a server that is being killed may still add a file.
  process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 }))
  return folder
}

export const temporaryFolder = (): string => {
  workspace ??= createWorkspace()
  return mkdtempSync(join(workspace, 'bench-'))
}
