/** The load generator of `sockets.ts` in a process of its own, so that it does not delay the other generator of a scenario. */
import { once } from 'node:events'
import { join } from 'node:path'
import { start } from '../processes.ts'
import type { Responses, SocketLoad } from './sockets.ts'

const PROGRAM = join(import.meta.dirname, 'remote-sockets-process.ts')

/** What the process is asked to do. */
export interface SocketOrder extends Omit<SocketLoad, 'next'> {
  /** The bytes of each request. */
  readonly request: string
}

export class RemoteSockets {
  readonly #child = start(process.execPath, [PROGRAM], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  readonly #exited = once(this.#child, 'exit')

  /** @throws {Error} if the process ends. */
  async run(order: SocketOrder): Promise<Responses['latencies']> {
    const reply = once(this.#child, 'message')
    this.#child.send(order)
    const [entries] = (await Promise.race([reply, this.#exited])) as [[number, number[]][]]
    if (this.#child.exitCode !== null) throw new Error('the load generator failed')
    return new Map(entries)
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#exited
  }
}
