/**
 * Runs a command with `TEST_DATABASE_URL`, `TMPDIR` and `TAP_JOBS`. If there is no `TEST_DATABASE_URL`, starts a temporary server and
 * stops it afterwards. `node scripts/with-postgres.ts tap`
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, statfsSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { startPostgres } from './postgres-server.ts'

/** A file system in memory, which Linux has and containers limit. */
const MEMORY = '/dev/shm'

/** Bytes that all test files together need. */
const NEEDED = 2 ** 31

/** In memory an fsync takes nothing; on a disk, waiting for those of SQLite takes most of the time of many tests. */
const temporaryFolder = (): string => {
  if (process.env.TMPDIR !== undefined || !existsSync(MEMORY)) return tmpdir()
  const { bavail, bsize } = statfsSync(MEMORY)
  const mount = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .find(line => line.split(' ')[1] === MEMORY)
  // Servers of tests may be run from a copy in this folder.
  const isExecutable = mount !== undefined && !/\bnoexec\b/.test(mount)
  return isExecutable && bavail * bsize >= NEEDED ? MEMORY : tmpdir()
}

process.env.TMPDIR = temporaryFolder()
const [command = '', ...args] = process.argv.slice(2)
const given = process.env.TEST_DATABASE_URL || undefined
const server = given === undefined ? await startPostgres() : null
const TEST_DATABASE_URL = given ?? server?.url
// One more than cores: files that start processes or wait for timers leave a third of two cores idle, and took 653 s instead of 485.
const TAP_JOBS = process.env.TAP_JOBS ?? String(availableParallelism() + 1)
/** Test files and the processes that they start keep compiled code, and preload a module before those that tap preloads. */
const environmentOfTap = (): { readonly NODE_COMPILE_CACHE: string; readonly NODE_OPTIONS: string } => {
  const lightTap = `--import=${new URL('../test/support/light-tap.ts', import.meta.url)}`
  return {
    NODE_COMPILE_CACHE: fileURLToPath(new URL('../node_modules/.cache/node', import.meta.url)),
    NODE_OPTIONS: [process.env.NODE_OPTIONS, lightTap].filter(Boolean).join(' '),
  }
}

try {
  const child = spawn(command, args, {
    env: { ...process.env, TAP_JOBS, TEST_DATABASE_URL, ...(command === 'tap' && environmentOfTap()) },
    stdio: 'inherit',
  })
  // The terminal interrupts the command too: wait for its exit.
  process.on('SIGINT', () => undefined)
  process.on('SIGTERM', () => child.kill())
  const [code] = (await once(child, 'exit')) as [number | null]
  process.exitCode = code ?? 1
} finally {
  await server?.stop()
}
