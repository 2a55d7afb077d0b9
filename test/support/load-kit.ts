/** A service with seeded users, and the commands of examples/load. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ADMIN_KEY, type Context, JWT_SECRET, temporaryFolder } from './build.ts'
import { runCli } from './cli.ts'
import { type Running, startServer, UNMEASURED } from './process.ts'

const PROJECT = join(import.meta.dirname, '..', '..')

/** Milliseconds until a load generator counts as stuck. */
const LIMIT = 60_000

/** Whether this command of a shell succeeds. Not in the folder of the repository: JMeter writes a log. */
export const succeeds = (command: string): boolean =>
  spawnSync('sh', ['-c', command], { cwd: tmpdir() }).status === 0

export const isInstalled = (program: string): boolean => succeeds(`command -v ${program}`)

export interface SeededService extends Running {
  readonly folder: string
  /** The environment of load generators for this service. */
  readonly env: Record<string, string>
  /** Writes the tokens to another file, with these options of `seed`. */
  seed(file: string, ...options: readonly string[]): Promise<void>
}

export const SEEDED_USERS = 200

export const startSeeded = async (t: Context, env: Record<string, string> = {}): Promise<SeededService> => {
  const folder = temporaryFolder(t)
  const databaseFile = join(folder, 'gatehouse.db')
  const inFolder = (file: string): string => join(folder, file)
  const seed = async (file: string, ...options: readonly string[]): Promise<void> => {
    const args = ['seed', '--users', String(SEEDED_USERS), '--tokens', inFolder(file), ...options]
    const { code, stderr } = await runCli(args, { DATABASE_URL: `sqlite:${databaseFile}`, JWT_SECRET }).ended
    if (code !== 0) throw new Error(stderr)
  }
  await seed('tokens.txt')
  const server = await startServer(t, { databaseFile, env })
  return {
    ...server,
    folder,
    env: { BASE_URL: server.url, ADMIN_KEY, TOKENS: inFolder('tokens.txt') },
    seed,
  }
}

export interface Finished {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

const kill = (child: ChildProcess): void => {
  try {
    // The whole group: npm, run.js and the load generator.
    process.kill(-(child.pid ?? 0), 'SIGKILL')
  } catch {
    // It has ended.
  }
}

/** Runs a command line in a shell in the folder of the repository. It ends with the test in any case. */
export const runInShell = async (
  t: Context,
  command: string,
  env: Record<string, string>,
): Promise<Finished> => {
  const child = spawn('bash', ['-c', command], {
    cwd: PROJECT,
    env: { ...process.env, ...UNMEASURED, K6_NO_USAGE_REPORT: 'true', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  t.teardown(() => kill(child))
  const timer = setTimeout(() => kill(child), LIMIT)
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].on('data', chunk => {
      output[name] += chunk
    })
  const [code] = await once(child, 'close')
  clearTimeout(timer)
  return { code, ...output }
}
