/** Three machines with PostgreSQL under Patroni and etcd, and HAProxy in front of them. */
import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../../scripts/postgres-server.ts'
import type { Context } from '../../support/build.ts'
import { until } from '../../support/until.ts'
import { Machine } from './machines.ts'

const DEBIAN = '/usr/lib/postgresql'
const ETCD_MODULE = '/usr/lib/python3/dist-packages/etcd'
const PROGRAMS = ['etcd', 'haproxy', 'ip', 'patroni', 'setpriv', 'unshare']
const USER = 'postgres'
const COUNT = 3

/** Seconds. A primary that cannot renew its lock stops within the TTL; the others replace it after the TTL. */
export const TIMING = { ttl: 10, loop_wait: 2, retry_timeout: 3 }

/** Milliseconds until three servers replicate again. */
const HEALTHY_LIMIT = 120_000
const REQUEST_LIMIT = 1_000

interface Member {
  readonly name: string
  readonly role: string
  readonly state: string
  readonly timeline?: number
}

/** The folder with the programs of the newest PostgreSQL that this Patroni can use. */
const postgresPrograms = (): string | undefined =>
  (existsSync(DEBIAN) ? readdirSync(DEBIAN) : [])
    .sort()
    .map(version => join(DEBIAN, version, 'bin'))
    .findLast(folder => existsSync(join(folder, 'pg_rewind')))

/** Why no cluster can run here; `null` if one can. */
export const obstacle = (): string | null => {
  const folders = (process.env.PATH ?? '').split(':')
  const missing = PROGRAMS.filter(name => !folders.some(folder => existsSync(join(folder, name))))
  if (process.getuid?.() !== 0) return 'network namespaces need root'
  if (missing.length > 0) return `not installed: ${missing.join(', ')}`
  if (!existsSync(ETCD_MODULE)) return 'not installed: python3-etcd'
  if (postgresPrograms() === undefined) return `there is no PostgreSQL in ${DEBIAN}`
  if (!Machine.isPossible()) return 'network namespaces cannot be created'
  return null
}

/** The JSON that a machine's Patroni returns; `null` without a response, or if it is not 200. */
const ask = async (machine: Machine, path: string): Promise<unknown> => {
  try {
    const signal = AbortSignal.timeout(REQUEST_LIMIT)
    const response = await fetch(`http://${machine.address('front')}:8008${path}`, { signal })
    return response.ok ? await response.json() : null
  } catch {
    return null
  }
}

export class Cluster {
  readonly machines: readonly Machine[]
  readonly #folder: string
  readonly #password = randomBytes(16).toString('hex')
  readonly #proxyPort: number

  private constructor(machines: readonly Machine[], folder: string, proxyPort: number) {
    this.machines = machines
    this.#folder = folder
    this.#proxyPort = proxyPort
  }

  static async start(context: Context): Promise<Cluster> {
    await Machine.removeAll()
    const folder = mkdtempSync(join(tmpdir(), 'gatehouse-cluster-'))
    context.teardown(async () => {
      await Machine.removeAll()
      rmSync(folder, { recursive: true })
    })
    const cluster = new Cluster(Machine.create(COUNT), folder, await freePort())
    for (const machine of cluster.machines) cluster.#prepare(machine)
    execFileSync('chown', ['-R', `${USER}:${USER}`, folder])
    for (const machine of cluster.machines) cluster.run(machine)
    cluster.#startProxy(context)
    await cluster.healthy()
    return cluster
  }

  /** A database by the addresses of all servers, and by HAProxy. */
  urls(database: string): { readonly direct: string; readonly proxied: string } {
    const hosts = this.machines.map(machine => `${machine.address('front')}:5432`)
    const of = (host: string) => `postgres://postgres:${this.#password}@${host}/${database}`
    return { direct: of(hosts.join(',')), proxied: of(`127.0.0.1:${this.#proxyPort}`) }
  }

  /** A database on one machine. */
  url(machine: Machine, database: string): string {
    return `postgres://postgres:${this.#password}@${machine.address('front')}:5432/${database}`
  }

  /** Starts etcd and Patroni of a machine. */
  run(machine: Machine): void {
    this.runEtcd(machine)
    machine.run(USER, this.#file(machine, 'patroni.log'), ['patroni', this.#file(machine, 'patroni.json')])
  }

  runEtcd(machine: Machine): void {
    const peers = this.machines.map(each => `${each.name}=http://${each.address('peers')}:2380`)
    const at = (port: number) => `http://${machine.address('peers')}:${port}`
    const options = {
      name: machine.name,
      'data-dir': this.#file(machine, 'etcd'),
      'listen-peer-urls': at(2380),
      'initial-advertise-peer-urls': at(2380),
      'listen-client-urls': at(2379),
      'advertise-client-urls': at(2379),
      'enable-v2': 'true',
      'initial-cluster': peers.join(','),
    }
    const args = Object.entries(options).map(([name, value]) => `--${name}=${value}`)
    machine.run(USER, this.#file(machine, 'etcd.log'), ['etcd', ...args])
  }

  /** The machine whose server has the lock of the primary. */
  async leader(): Promise<Machine | undefined> {
    const responses = await Promise.all(this.machines.map(machine => ask(machine, '/primary')))
    return this.machines.find((_, index) => responses[index] !== null)
  }

  /** Waits until another machine than `former` is the primary. */
  async leaderAfter(former: Machine): Promise<Machine> {
    const leader = await until(
      () => this.leader(),
      found => found !== undefined && found !== former,
      HEALTHY_LIMIT,
    )
    if (leader === undefined || leader === former) throw new Error('no standby is promoted')
    return leader
  }

  /** Waits until all servers replicate, one of them synchronously. @returns the primary. */
  async healthy(): Promise<Machine> {
    const isHealthy = async (): Promise<boolean> => {
      const states = (await Promise.all(this.machines.map(machine => ask(machine, '/cluster')))) as ({
        members: Member[]
      } | null)[]
      return states.every(state => {
        const members = state?.members ?? []
        return (
          members.length === COUNT &&
          members.every(({ state, timeline }) => state === 'running' && timeline === members[0]?.timeline) &&
          ['leader', 'sync_standby', 'replica'].every(role => members.some(member => member.role === role))
        )
      })
    }
    if (!(await until(isHealthy, Boolean, HEALTHY_LIMIT)))
      throw new Error(`the cluster does not recover:\n${this.#logs()}`)
    const leader = await this.leader()
    return leader ?? this.healthy()
  }

  async switchOver(leader: Machine): Promise<void> {
    const body = JSON.stringify({ leader: leader.name })
    const response = await fetch(`http://${leader.address('front')}:8008/switchover`, {
      method: 'POST',
      body,
    })
    if (!response.ok) throw new Error(`no switchover: ${response.status} ${await response.text()}`)
  }

  #file(machine: Machine, name: string): string {
    return join(this.#folder, machine.name, name)
  }

  #logs(): string {
    return this.machines
      .map(
        machine =>
          `${machine.name}:\n${readFileSync(this.#file(machine, 'patroni.log'), 'utf8').split('\n').slice(-15).join('\n')}`,
      )
      .join('\n')
  }

  #prepare(machine: Machine): void {
    mkdirSync(join(this.#folder, machine.name), { mode: 0o700 })
    const account = (username: string) => ({ username, password: this.#password })
    const configuration = {
      scope: 'gatehouse',
      name: machine.name,
      restapi: { listen: '0.0.0.0:8008', connect_address: `${machine.address('peers')}:8008` },
      // Not `etcd3`: with Patroni 3.0.2 a primary that was paused takes the lock back there (patroni/patroni#2689).
      etcd: { hosts: this.machines.map(each => `${each.address('peers')}:2379`) },
      bootstrap: {
        dcs: {
          ...TIMING,
          synchronous_mode: true,
          // While etcd is lost, the primary goes on as long as it reaches all other machines.
          failsafe_mode: true,
          postgresql: { use_pg_rewind: true, use_slots: true },
        },
        initdb: ['data-checksums', { encoding: 'UTF8' }, { locale: 'C' }],
      },
      postgresql: {
        listen: '0.0.0.0:5432',
        connect_address: `${machine.address('peers')}:5432`,
        data_dir: this.#file(machine, 'data'),
        bin_dir: postgresPrograms(),
        pgpass: this.#file(machine, 'pgpass'),
        authentication: { superuser: account('postgres'), replication: account('replicator') },
        parameters: {
          unix_socket_directories: this.#file(machine, ''),
          // Shared memory of a killed server ends with its folder.
          dynamic_shared_memory_type: 'mmap',
        },
        pg_hba: ['all', 'replication'].map(database => `host ${database} all 0.0.0.0/0 scram-sha-256`),
      },
    }
    writeFileSync(this.#file(machine, 'patroni.json'), JSON.stringify(configuration))
  }

  #startProxy(context: Context): void {
    const servers = this.machines.map(
      machine => `  server ${machine.name} ${machine.address('front')}:5432 check port 8008\n`,
    )
    const file = join(this.#folder, 'haproxy.cfg')
    writeFileSync(
      file,
      `defaults
  mode tcp
  timeout connect 1s
  timeout check 1s
  timeout client 1h
  timeout server 1h
listen primary
  bind 127.0.0.1:${this.#proxyPort}
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
${servers.join('')}`,
    )
    const log = openSync(join(this.#folder, 'haproxy.log'), 'a')
    const proxy = spawn('haproxy', ['-db', '-f', file], { stdio: ['ignore', log, log] })
    proxy.unref()
    context.teardown(() => proxy.kill('SIGKILL'))
  }
}
