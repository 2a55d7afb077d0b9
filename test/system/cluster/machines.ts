/**
 * Machines as network namespaces. Each has two networks: `front`, which this process and the service reach, and `peers`, of the
 * machines among themselves. Only one set of machines exists at a time.
 */
import { execFileSync, spawn } from 'node:child_process'
import { openSync, readFileSync } from 'node:fs'
import { until } from '../../support/until.ts'

const NETWORKS = ['front', 'peers'] as const

export type Network = (typeof NETWORKS)[number]

/** This process on the network `front`. */
const GATEWAY = '10.213.1.254/24'

/** Milliseconds until killed processes are gone. */
const END_LIMIT = 10_000

const ip = (...args: string[]): string =>
  execFileSync('ip', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

const bridgeOf = (network: Network): string => `gatehouse-${network}`

/** What a command prints; nothing if it fails: there is nothing to remove. */
const attempt = (...args: string[]): string => {
  try {
    return ip(...args)
  } catch {
    return ''
  }
}

export class Machine {
  readonly name: string
  readonly #number: number
  readonly #namespace: string

  private constructor(number: number) {
    this.#number = number
    this.name = `machine-${number}`
    this.#namespace = `gatehouse-${number}`
  }

  /** Whether this process may create networks. */
  static isPossible(): boolean {
    try {
      ip('netns', 'add', 'gatehouse-0')
      ip('-n', 'gatehouse-0', 'link', 'add', 'front', 'type', 'bridge')
      ip('netns', 'delete', 'gatehouse-0')
      return true
    } catch {
      return false
    }
  }

  static create(count: number): Machine[] {
    for (const network of NETWORKS) {
      ip('link', 'add', bridgeOf(network), 'type', 'bridge')
      ip('link', 'set', bridgeOf(network), 'up')
    }
    ip('address', 'add', GATEWAY, 'dev', bridgeOf('front'))
    const machines = Array.from({ length: count }, (_, index) => new Machine(index + 1))
    for (const machine of machines) machine.#connect()
    return machines
  }

  /** Kills all processes and removes the networks, also those that an earlier run has left. */
  static async removeAll(): Promise<void> {
    const left = attempt('netns', 'list').match(/^gatehouse-\d+/gm) ?? []
    const machines = left.map(namespace => new Machine(Number(namespace.split('-')[1])))
    for (const machine of machines) {
      await machine.kill()
      // With the namespace they would end later.
      for (const network of NETWORKS) attempt('link', 'delete', machine.#link(network))
      ip('netns', 'delete', machine.#namespace)
    }
    for (const network of NETWORKS) attempt('link', 'delete', bridgeOf(network))
  }

  /** Its address in a network. */
  address(network: Network): string {
    return `10.213.${NETWORKS.indexOf(network) + 1}.${this.#number}`
  }

  /** Starts a program as a user. Shared memory of a killed PostgreSQL ends with the IPC namespace. */
  run(user: string, logFile: string, command: readonly string[]): void {
    const log = openSync(logFile, 'a')
    const privileges = ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups']
    const args = ['netns', 'exec', this.#namespace, 'unshare', '--ipc', ...privileges, ...command]
    spawn('ip', args, { cwd: '/', stdio: ['ignore', log, log] }).unref()
  }

  /** Sends a signal to every process, or to those of one program. */
  signal(signal: NodeJS.Signals, program?: string): void {
    for (const pid of this.#processes()) {
      try {
        if (program === undefined || readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === program)
          process.kill(pid, signal)
      } catch {
        // It has ended.
      }
    }
  }

  async kill(): Promise<void> {
    const end = (): number => {
      this.signal('SIGKILL')
      return this.#processes().length
    }
    if ((await until(end, count => count === 0, END_LIMIT)) > 0) throw new Error(`${this.name} does not end`)
  }

  /** Cuts it off from networks, or connects it again. */
  setConnected(isConnected: boolean, networks: readonly Network[] = NETWORKS): void {
    for (const network of networks) ip('link', 'set', this.#link(network), isConnected ? 'up' : 'down')
  }

  #processes(): number[] {
    return attempt('netns', 'pids', this.#namespace).split('\n').filter(Boolean).map(Number)
  }

  /** The other end of its interface, on the bridge. */
  #link(network: Network): string {
    return `gh-${network}-${this.#number}`
  }

  #connect(): void {
    const namespace = this.#namespace
    ip('netns', 'add', namespace)
    ip('-n', namespace, 'link', 'set', 'lo', 'up')
    for (const network of NETWORKS) {
      const link = this.#link(network)
      ip('link', 'add', link, 'type', 'veth', 'peer', 'name', network, 'netns', namespace)
      ip('link', 'set', link, 'master', bridgeOf(network), 'up')
      ip('-n', namespace, 'address', 'add', `${this.address(network)}/24`, 'dev', network)
      ip('-n', namespace, 'link', 'set', network, 'up')
    }
  }
}
