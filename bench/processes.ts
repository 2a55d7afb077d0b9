/** Starts the processes of the bench on the loopback interface, queries their resources, and ends them in every case. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { listening } from '../scripts/listening.ts'
import { pinned } from './cores.ts'
import type { Question } from './probe.ts'
import type { Environment, Store } from './stores.ts'

const ROOT = join(import.meta.dirname, '..')
const PROBE = './bench/probe.ts'

/** Milliseconds until the start of a process counts as failed. */
const START_LIMIT = 120_000

const running = new Set<ChildProcess>()

/** Starts a program that ends with the bench at the latest. */
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
  const args = ['--import', './src/preload.js', '--import', PROBE, entry]
  const { PATH } = process.env
  const child = start(...pinned(cores, process.execPath, args), {
    cwd: ROOT,
    env: {
      ...(PATH !== undefined && { PATH }),
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      PORT: '0',
      WORKERS: '1',
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

/** Starts the service like `npm start`, with production defaults and a store of users. */
export const startService = (
  { environment }: Store,
  env: Environment = {},
  options: StartOptions = {},
): Promise<Server> => startServer('src/server.ts', { ...environment, ...env }, options)

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
