/**
 * File descriptors of database files, for reading bytes without SQLite. POSIX drops all locks that a process has on a file when it closes any
 * descriptor of it, SQLite's too, and another process could then delete the WAL. So all stores of a process share one descriptor of a file,
 * which is closed when none has the file open.
 */
import { closeSync, fstatSync, openSync, statSync } from 'node:fs'

/** Device and inode. */
export type FileId = string

export const idOf = ({ dev, ino }: { dev: bigint; ino: bigint }): FileId => `${dev}:${ino}`

const descriptors = new Map<FileId, { readonly fd: number; users: number }>()

export interface SharedDescriptor {
  readonly fd: number
  readonly id: FileId
  /** Call it once, after SQLite has closed the file. */
  release(): void
}

/** Opens a file, or shares its descriptor. @throws {Error} when the file does not exist or cannot be read. */
export const acquireDescriptor = (path: string): SharedDescriptor => {
  const known = descriptors.get(idOf(statSync(path, { bigint: true })))
  const fd = known?.fd ?? openSync(path, 'r')
  const id = idOf(fstatSync(fd, { bigint: true }))
  const entry = descriptors.get(id) ?? { fd, users: 0 }
  descriptors.set(id, entry)
  entry.users += 1
  return {
    fd: entry.fd,
    id,
    release() {
      entry.users -= 1
      if (entry.users > 0) return
      descriptors.delete(id)
      closeSync(entry.fd)
    },
  }
}
