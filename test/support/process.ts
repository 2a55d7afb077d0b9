/** The service as its users run it: a process of its own, on a port of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { listening } from '../../scripts/listening.ts'
import { ADMIN_KEY, type Context, JWT_SECRET, temporaryFolder } from './build.ts'

const PROJECT = join(import.meta.dirname, '..', '..')

/** Milliseconds until a process that does not start counts as failed. */
const START_LIMIT = 20_000

export interface Running {
  readonly url: string
  readonly port: number
  readonly process: ChildProcess
  /** All that it has written so far. */
  output(): string
  /** Sends the signal and waits for the end. @returns the exit code, `null` after SIGKILL. */
  stop(signal: NodeJS.Signals): Promise<number | null>
}

export interface StartOptions {
  readonly env?: Record<string, string>
  /** The database's file; a new one by default. */
  readonly databaseFile?: string
}

/** Processes of the service count for nothing in tap's coverage: measuring them costs half a second each. */
const UNMEASURED = { _TAPJS_PROCESSINFO_COVERAGE_: '0' }

/** Starts a file of the project as the scripts of package.json do, without waiting for it. */
export const spawnScript = (
  args: readonly string[],
  env: Record<string, string>,
  stdin: 'ignore' | 'pipe' = 'ignore',
): ChildProcess =>
  spawn(process.execPath, ['--import', './src/preload.js', ...args], {
    cwd: PROJECT,
    env: { ...process.env, ...UNMEASURED, ...env },
    stdio: [stdin, 'pipe', 'pipe'],
  })

export const spawnServer = (env: Record<string, string>): ChildProcess => spawnScript(['src/server.ts'], env)

/** Starts the service and waits until it listens. It is ended with the test, whatever happens. */
export const startServer = async (
  t: Context,
  { env = {}, databaseFile }: StartOptions = {},
): Promise<Running> => {
  const child = spawnServer({
    NODE_ENV: 'test',
    HOST: '127.0.0.1',
    PORT: '0',
    LOG_LEVEL: 'info',
    DATABASE_URL: `sqlite:${databaseFile ?? join(temporaryFolder(t), 'test.db')}`,
    ADMIN_KEY,
    JWT_SECRET,
    DRAIN_DELAY: '0s',
    RATE_LIMIT: 'off',
    MAIL_URL: 'off',
    ...env,
  })
  const exited = once(child, 'exit')
  const stop = async (signal: NodeJS.Signals): Promise<number | null> => {
    child.kill(signal)
    const [code] = await exited
    return code
  }
  t.teardown(() => stop('SIGKILL'))
  const { url, output } = await listening(child, START_LIMIT)
  return { url, port: Number(new URL(url).port), process: child, output, stop }
}

/** Writes bytes to a new connection and collects the answer until the server closes it or stays silent for a while. */
export const exchange = async (port: number, bytes: string | Buffer, silence = 500): Promise<string> => {
  const socket: Socket = connect(port, '127.0.0.1')
  let answer = ''
  socket.setTimeout(silence, () => socket.destroy())
  socket.on('data', chunk => {
    answer += chunk
  })
  socket.on('error', () => undefined)
  socket.write(bytes)
  await once(socket, 'close')
  return answer
}

export interface RawAnswer {
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: string
}

/** The first answer in what {@link exchange} collected. */
export const parseAnswer = (answer: string): RawAnswer => {
  const [head = '', ...rest] = answer.split('\r\n\r\n')
  const [statusLine = '', ...lines] = head.split('\r\n')
  const headers = Object.fromEntries(
    lines.map(line => [
      line.slice(0, line.indexOf(':')).toLowerCase(),
      line.slice(line.indexOf(':') + 1).trim(),
    ]),
  )
  return { status: Number(statusLine.split(' ')[1]), headers, body: rest.join('\r\n\r\n') }
}
