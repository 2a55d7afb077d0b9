/** A file system of a few megabytes, which a test can fill without affecting others. */
import { execFileSync } from 'node:child_process'
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { type Context, temporaryFolder } from './build.ts'

export interface SmallDisk {
  readonly folder: string
  /** Uses all remaining space. */
  fill(): void
  /** Frees what {@link fill} has used. */
  free(): void
}

const CHUNK = Buffer.alloc(65_536)

/** @returns `null` where it cannot be mounted, which needs Linux and root. */
export const mountSmallDisk = (t: Context, megabytes: number): SmallDisk | null => {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return null
  const folder = temporaryFolder(t)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder], { stdio: 'ignore' })
  } catch {
    return null
  }
  t.teardown(() => execFileSync('umount', ['--lazy', folder]))
  const ballast = join(folder, 'ballast')
  return {
    folder,
    fill() {
      const fd = openSync(ballast, 'a')
      // Page by page at the end: a write that does not fit completely is not made.
      for (const size of [CHUNK.length, 4_096]) {
        try {
          for (;;) writeSync(fd, CHUNK, 0, size)
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
        }
      }
      closeSync(fd)
    },
    free: () => rmSync(ballast, { force: true }),
  }
}
