/** The service as its users run it: a process of its own, on a port of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { listening } from '../../scripts/listening.ts'
import { freePort } from '../../scripts/postgres-server.ts'
import { ADMIN_KEY, type Context, JWT_SECRET, temporaryFolder } from './build.ts'
import { until } from './until.ts'

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

const serverEnv = (t: Context, { env = {}, databaseFile }: StartOptions): Record<string, string> => ({
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

/** Ends the process with the test, whatever happens. */
const stopping = (t: Context, child: ChildProcess): Running['stop'] => {
  const exited = once(child, 'exit')
  const stop = async (signal: NodeJS.Signals): Promise<number | null> => {
    child.kill(signal)
    const [code] = await exited
    return code
  }
  t.teardown(() => stop('SIGKILL'))
  return stop
}

/** Starts the service and waits until it listens. It is ended with the test, whatever happens. */
export const startServer = async (t: Context, options: StartOptions = {}): Promise<Running> => {
  const child = spawnServer(serverEnv(t, options))
  const stop = stopping(t, child)
  const { url, output } = await listening(child, START_LIMIT)
  return { url, port: Number(new URL(url).port), process: child, output, stop }
}

/**
 * As {@link startServer}, with another standard output, from which nothing is read: waits until the service is ready.
 * `output` returns what it has written to standard error.
 * @param stdio standard output, and standard error where that is not read either.
 */
export const startWithOutput = async (
  t: Context,
  [stdout, stderr = 'pipe']: readonly [stdout: number | 'pipe', stderr?: number | 'pipe'],
  options: StartOptions = {},
): Promise<Running> => {
  const port = await freePort()
  const child = spawn(process.execPath, ['--import', './src/preload.js', 'src/server.ts'], {
    cwd: PROJECT,
    env: { ...process.env, ...UNMEASURED, ...serverEnv(t, options), PORT: String(port) },
    stdio: ['ignore', stdout, stderr],
  })
  const stop = stopping(t, child)
  let output = ''
  child.stderr?.on('data', chunk => {
    output += chunk
  })
  const url = `http://127.0.0.1:${port}`
  const state = () => {
    if (child.exitCode !== null) return 'ended'
    return fetch(`${url}/ready`).then(
      ({ ok }) => (ok ? 'ready' : 'starting'),
      () => 'starting',
    )
  }
  const reached = await until(state, name => name !== 'starting', START_LIMIT)
  if (reached !== 'ready') throw new Error(`the service does not start, it is ${reached}:\n${output}`)
  return { url, port, process: child, output: () => output, stop }
}

/**
 * Sends GET requests on one connection, without waiting for a response in between.
 * @returns how many were answered with 200, before the connection closed or was silent for `silence` milliseconds.
 */
export const pipelined = async (
  port: number,
  path: string,
  count: number,
  silence = 5_000,
): Promise<number> => {
  const socket = connect(port, '127.0.0.1')
  let received = ''
  let answered = 0
  socket.setTimeout(silence, () => socket.destroy())
  socket.on('error', () => undefined)
  socket.on('data', chunk => {
    received += chunk.toString('latin1')
    const found = received.match(/HTTP\/1\.1 200 /g)?.length ?? 0
    answered += found
    // A status line that is split between two chunks is found with the second one.
    received = found === 0 ? received.slice(-12) : received.slice(received.lastIndexOf('HTTP/1.1 200 ') + 13)
    if (answered === count) socket.end()
  })
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(count))
  await once(socket, 'close')
  return answered
}

/** Writes bytes to a new connection and collects the answer until the server closes it or stays silent for a while. */
export const exchange = async (port: number, bytes: string | Buffer, silence = 500): Promise<string> => {
  const socket: Socket = connect(port, '127.0.0.1')
  let response = ''
  socket.setTimeout(silence, () => socket.destroy())
  socket.on('data', chunk => {
    response += chunk
  })
  socket.on('error', () => undefined)
  socket.write(bytes)
  await once(socket, 'close')
  return response
}

export interface ParsedResponse {
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: string
}

/** The first answer in what {@link exchange} collected. */
export const parseResponse = (response: string): ParsedResponse => {
  const [head = '', ...rest] = response.split('\r\n\r\n')
  const [statusLine = '', ...lines] = head.split('\r\n')
  const headers = Object.fromEntries(
    lines.map(line => [
      line.slice(0, line.indexOf(':')).toLowerCase(),
      line.slice(line.indexOf(':') + 1).trim(),
    ]),
  )
  return { status: Number(statusLine.split(' ')[1]), headers, body: rest.join('\r\n\r\n') }
}
