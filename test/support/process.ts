/** The service as a separate process on a separate port. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { listening } from '../../scripts/listening.ts'
import { freePort } from '../../scripts/postgres-server.ts'
import { ADMIN_KEY, type Context, JWT_SECRET, newFile } from './build.ts'
import { until } from './until.ts'

const PROJECT = join(import.meta.dirname, '..', '..')

/** Milliseconds until a process that does not start counts as failed, on a machine with ten times as much work as cores. */
const START_LIMIT = 60_000

export interface Running {
  readonly url: string
  readonly port: number
  readonly process: ChildProcess
  /** Its output so far. */
  output(): string
  /** Sends the signal and waits for the exit. @returns the exit code, `null` after SIGKILL. */
  stop(signal: NodeJS.Signals): Promise<number | null>
}

export interface StartOptions {
  readonly env?: Record<string, string>
  /** The database file, which the service creates; by default a migrated one. */
  readonly databaseFile?: string
}

/** Excludes processes of the service from tap's coverage: measuring costs half a second each. */
export const UNMEASURED = { _TAPJS_PROCESSINFO_COVERAGE_: '0' }

/** Starts a script like package.json does, without waiting for it. */
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

const serverEnv = async (
  t: Context,
  { env = {}, databaseFile }: StartOptions,
): Promise<Record<string, string>> => ({
  NODE_ENV: 'test',
  HOST: '127.0.0.1',
  PORT: '0',
  WORKERS: '1',
  LOG_LEVEL: 'info',
  // The migrations take a fifth of a start.
  DATABASE_URL:
    env.DATABASE_URL ?? (databaseFile === undefined ? await newFile(t) : `sqlite:${databaseFile}`),
  ADMIN_KEY,
  JWT_SECRET,
  DRAIN_DELAY: '0s',
  RATE_LIMIT: 'off',
  MAIL_URL: 'off',
  ...env,
})

/** A migrated database file, for a service that is started on it again. */
export const newDatabaseFile = async (t: Context): Promise<string> =>
  (await newFile(t)).slice('sqlite:'.length)

/** Ends the process with the test in any case. */
export const stopping = (t: Context, child: ChildProcess): Running['stop'] => {
  const exited = once(child, 'exit')
  const stop = async (signal: NodeJS.Signals): Promise<number | null> => {
    child.kill(signal)
    const [code] = await exited
    return code
  }
  t.teardown(() => stop('SIGKILL'))
  return stop
}

/** Starts the service and waits until it listens. It ends with the test in any case. */
export const startServer = async (t: Context, options: StartOptions = {}): Promise<Running> => {
  const child = spawnServer(await serverEnv(t, options))
  const stop = stopping(t, child)
  const { url, output } = await listening(child, START_LIMIT)
  return { url, port: Number(new URL(url).port), process: child, output, stop }
}

/**
 * Like {@link startServer}, with another standard output that is not read: waits until the service is ready. `output`
 * returns standard error.
 * @param stdio standard output, and standard error if that is not read either.
 */
export const startWithOutput = async (
  t: Context,
  [stdout, stderr = 'pipe']: readonly [stdout: number | 'pipe', stderr?: number | 'pipe'],
  options: StartOptions = {},
): Promise<Running> => {
  const port = await freePort()
  const child = spawn(process.execPath, ['--import', './src/preload.js', 'src/server.ts'], {
    cwd: PROJECT,
    env: { ...process.env, ...UNMEASURED, ...(await serverEnv(t, options)), PORT: String(port) },
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
 * Sends GET requests on one connection without waiting for responses.
 * @returns the number of 200 responses before the connection closed or was silent for `silence` milliseconds.
 */
export const pipelined = async (
  port: number,
  path: string,
  count: number,
  silence = 5_000,
): Promise<number> => {
  const socket = connect(port, '127.0.0.1')
  let received = ''
  let responses = 0
  socket.setTimeout(silence, () => socket.destroy())
  socket.on('error', () => undefined)
  socket.on('data', chunk => {
    received += chunk.toString('latin1')
    const found = received.match(/HTTP\/1\.1 200 /g)?.length ?? 0
    responses += found
    // A status line that is split between two chunks is found with the second one.
    received = found === 0 ? received.slice(-12) : received.slice(received.lastIndexOf('HTTP/1.1 200 ') + 13)
    if (responses === count) socket.end()
  })
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(count))
  await once(socket, 'close')
  return responses
}

/**
 * Writes bytes to a new connection and collects the response until the server closes it.
 * @param silence milliseconds until a connection without traffic is closed here.
 */
export const exchange = async (port: number, bytes: string | Buffer, silence = 10_000): Promise<string> => {
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

/** Parses the first response in what {@link exchange} collected. */
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
