/** Starts the processes of the bench on the loopback interface, queries their resources, and ends them in every case. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listening } from '../scripts/listening.ts'
import type { Question } from './probe.ts'

export type Environment = Readonly<Record<string, string>>

const ROOT = join(import.meta.dirname, '..')
const PROBE = './bench/probe.ts'

/** Milliseconds until the start of a process counts as failed. */
const START_LIMIT = 120_000

/** Says on standard error what the bench does: standard output has the results, which may be JSON. */
export const progress = (text: string): void => void process.stderr.write(`${text}\n`)

const createWorkspace = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'))
  // Retries, because a server that is being killed may still add a file.
  process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 }))
  return folder
}

let workspace: string | null = null

/** @returns a folder that is removed when the bench exits. */
export const temporaryFolder = (): string => {
  workspace ??= createWorkspace()
  return mkdtempSync(join(workspace, 'bench-'))
}

const running = new Set<ChildProcess>()

const endAll = (): void => {
  for (const child of running) child.kill('SIGKILL')
}
process.once('exit', endAll)

/**
 * Starts a program that ends with the bench at the latest.
 * @param cores the processors to run on, with `taskset`; by default all.
 */
export const start = (
  program: string,
  args: readonly string[],
  options: Parameters<typeof spawn>[2],
  cores?: readonly number[],
): ChildProcess => {
  const child =
    cores === undefined
      ? spawn(program, args, options)
      : spawn('taskset', ['-c', cores.join(), program, ...args], options)
  running.add(child)
  child.once('exit', () => running.delete(child))
  return child
}

/** Expands a list of processors as Linux writes it: `0-3,8`. */
const expand = (list: string): readonly number[] =>
  list.split(',').flatMap(range => {
    const [first = 0, last = first] = range.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })

/** @returns the processors that programs can be pinned to: those of this process; none without `taskset`. */
export const coresToPin = (): readonly number[] => {
  if (process.platform !== 'linux' || spawnSync('taskset', ['--version']).error !== undefined) return []
  const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
  return list === undefined ? [] : expand(list)
}

export interface Server {
  /** The URL without a path. */
  readonly url: string
  ask(question: Question): Promise<number>
  stop(): Promise<void>
}

export interface StartOptions {
  /** The number of processes to wait for; more than one with `WORKERS`. */
  readonly processes?: number
  /** The processors to run on; by default all. */
  readonly cores?: readonly number[]
}

/** @param entry a file in the project: the entry of the service, of a variant or of a baseline. */
export const startServer = async (
  entry: string,
  env: Environment = {},
  { processes, cores }: StartOptions = {},
): Promise<Server> => {
  const { PATH } = process.env
  const defaults = { HOST: '127.0.0.1', PORT: '0', WORKERS: '1', RATE_LIMIT: 'off', MAIL_URL: 'off' }
  const child = start(
    process.execPath,
    ['--import', './src/preload.js', '--import', PROBE, entry],
    {
      cwd: ROOT,
      env: { ...(PATH !== undefined && { PATH }), NODE_ENV: 'production', ...defaults, ...env },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    },
    cores,
  )
  const exited = once(child, 'exit')
  const { url } = await listening(child, START_LIMIT, processes)
  return {
    url,
    async ask(question) {
      const reply = once(child, 'message')
      child.send(question)
      const [value] = (await reply) as [number]
      return value
    },
    async stop() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** Runs `use` while the servers run, and stops them in every case. */
export const withServers = async <Result>(
  starts: readonly (() => Promise<Server>)[],
  use: (...servers: Server[]) => Promise<Result>,
): Promise<Result> => {
  const servers: Server[] = []
  try {
    for (const startOne of starts) servers.push(await startOne())
    return await use(...servers)
  } finally {
    for (const server of servers) await server.stop()
  }
}
