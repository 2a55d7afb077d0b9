/** The processes of the bench: started on the loopback, asked about themselves, ended whatever happens. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { listening } from '../scripts/listening.ts'
import { pinned } from './cores.ts'
import type { Question } from './probe.ts'
import type { Environment, Store } from './stores.ts'

export const PROJECT = join(import.meta.dirname, '..')
const PROBE = './bench/probe.ts'

/** Milliseconds until a process that does not start counts as failed. */
const START_LIMIT = 120_000

const running = new Set<ChildProcess>()

/** Starts any program so that it ends no later than the bench. */
export const start = (...[program, args, options]: Required<Parameters<typeof spawn>>): ChildProcess => {
  const child = spawn(program, args, options)
  running.add(child)
  child.once('exit', () => running.delete(child))
  return child
}

const endAll = (): void => {
  for (const child of running) child.kill('SIGKILL')
}
process.once('exit', endAll)

export interface Server {
  /** Without a path. */
  readonly url: string
  ask(question: Question): Promise<number>
  stop(): Promise<void>
}

export interface StartOptions {
  /** How many processes listen, which are all waited for: with `WORKERS` more than one. */
  readonly processes?: number
  /** The processors to run on; without it, all. */
  readonly cores?: readonly number[]
}

/** @param entry a file in the project: the service's own entry, a variant of it, a yardstick. */
export const startServer = async (
  entry: string,
  env: Environment = {},
  { processes, cores }: StartOptions = {},
): Promise<Server> => {
  const args = ['--import', './src/preload.js', '--import', PROBE, entry]
  const { PATH } = process.env
  const child = start(...pinned(cores, process.execPath, args), {
    cwd: PROJECT,
    env: {
      ...(PATH !== undefined && { PATH }),
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      PORT: '0',
      RATE_LIMIT: 'off',
      MAIL_URL: 'off',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  const exited = once(child, 'exit')
  const { url } = await listening(child, START_LIMIT, processes)
  return {
    url,
    async ask(question) {
      const answer = once(child, 'message')
      child.send(question)
      const [value] = (await answer) as [number]
      return value
    },
    async stop() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** The service as `npm start` starts it: production defaults, a store of users. */
export const startService = (
  { environment }: Store,
  env: Environment = {},
  options: StartOptions = {},
): Promise<Server> => startServer('src/server.ts', { ...environment, ...env }, options)

/** Runs `use` while the servers run, and stops them whatever happens. */
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
