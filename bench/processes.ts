/** The processes of the bench: started on the loopback, asked for their CPU time, ended whatever happens. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { listening } from '../scripts/listening.ts'
import type { Workspace } from './workspace.ts'

const PROJECT = join(import.meta.dirname, '..')
const PROBE = './bench/probe.ts'

/** Milliseconds until a process that does not start counts as failed. */
const START_LIMIT = 60_000

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
  /** Microseconds of CPU, user and system, that the process has used so far. */
  cpu(): Promise<number>
  stop(): Promise<void>
}

const cpuOf = async (child: ChildProcess): Promise<number> => {
  const answer = once(child, 'message')
  child.send('cpu')
  const [{ user, system }] = (await answer) as [NodeJS.CpuUsage]
  return user + system
}

const startServer = async (entry: string, env: Record<string, string>): Promise<Server> => {
  const args = ['--import', './src/preload.js', '--import', PROBE, entry]
  const { PATH } = process.env
  const child = start(process.execPath, args, {
    cwd: PROJECT,
    env: {
      ...(PATH !== undefined && { PATH }),
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      PORT: '0',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  const exited = once(child, 'exit')
  const { url } = await listening(child, START_LIMIT)
  return {
    url,
    cpu: () => cpuOf(child),
    async stop() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** The service as `npm start` starts it: production defaults, its own file of users. */
export const startService = (
  workspace: Workspace,
  env: Readonly<Record<string, string>> = {},
): Promise<Server> =>
  startServer('src/server.ts', {
    DATABASE_URL: `sqlite:${workspace.databaseFile}`,
    JWT_SECRET: workspace.jwtSecret,
    ...env,
  })

/** @param module a file in `yardsticks/`. */
export const startYardstick = (module: string): Promise<Server> =>
  startServer(`bench/yardsticks/${module}`, {})
