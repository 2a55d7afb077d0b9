/** Durable changes of directories. */
import { closeSync, fsyncSync, openSync } from 'node:fs'

/** Syncs the entries of a directory: a synced file without a synced entry is lost in a power cut. Windows has no such call. */
export const syncDirectory = (directory: string): void => {
  if (process.platform === 'win32') return
  const handle = openSync(directory, 'r')
  fsyncSync(handle)
  closeSync(handle)
}
