/**
 * Descriptors of database files, for looks at their bytes past SQLite. POSIX drops all locks that a process has on a file when
 * it closes any descriptor of it, and SQLite's with them: another process may then take the write-ahead log away. So there is
 * one descriptor a file, which is closed when no store of this process has the file open.
 */
import { closeSync, fstatSync, openSync, statSync } from 'node:fs'

/** Device and inode. */
export type FileId = string

export const idOf = ({ dev, ino }: { dev: bigint; ino: bigint }): FileId => `${dev}:${ino}`

const held = new Map<FileId, { readonly fd: number; users: number }>()

export interface HeldFile {
  readonly fd: number
  readonly id: FileId
  /** To be called when SQLite has closed the file. */
  release(): void
}

/** @throws {Error} when there is no such file, or it cannot be read. */
export const holdFile = (path: string): HeldFile => {
  const known = held.get(idOf(statSync(path, { bigint: true })))
  const fd = known?.fd ?? openSync(path, 'r')
  const id = idOf(fstatSync(fd, { bigint: true }))
  const entry = held.get(id) ?? { fd, users: 0 }
  held.set(id, entry)
  entry.users += 1
  return {
    fd: entry.fd,
    id,
    release() {
      entry.users -= 1
      if (entry.users > 0) return
      held.delete(id)
      closeSync(entry.fd)
    },
  }
}
