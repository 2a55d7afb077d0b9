/**
 * A load with a constant rate of arrivals, whatever the server does (an open loop). Latencies run from the time a request was due,
 * so that a server that stalls does not hide how long requests wait (no coordinated omission).
 */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { start } from '../processes.ts'
import type { Requests } from '../requests.ts'
import { temporaryFolder } from '../workspace.ts'

const PROGRAM = join(import.meta.dirname, 'open-loop-process.ts')

export interface Target {
  /** The URL of the server, without a path. */
  readonly url: string
  readonly requests: Requests
}

/** What the process is asked to do. */
export type Order = { readonly seconds: number } & (
  | { readonly kind: 'offer'; readonly rate: number }
  | { readonly kind: 'saturate'; readonly connections: number }
)

/** Rates are per second, latencies in milliseconds. */
export interface OpenLoopResult {
  /** Less than the rate if the generator was too slow. */
  readonly offered: number
  /** Successful responses before the end of the load. */
  readonly succeeded: number
  /** Responses with 503. */
  readonly rejected: number
  /** The response times of requests that were not rejected; those without a response a second after the end count as late as they are then. */
  readonly p99: number
  /** Of the rejected requests alone; `null` if there are none. */
  readonly rejectedP99: number | null
  /** The longest turn of the generator: many milliseconds mean that other programs took its processor. */
  readonly stall: number
}

/** A generator for one target, in a process of its own, whose code stays compiled from load to load. */
export class OpenLoop {
  readonly #child: ReturnType<typeof start>
  readonly #exited: Promise<unknown>

  constructor(target: Target) {
    const file = join(temporaryFolder(), 'target.json')
    writeFileSync(file, JSON.stringify(target))
    this.#child = start(process.execPath, [PROGRAM, file], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    this.#exited = once(this.#child, 'exit')
  }

  /** Requests per second to which the server responds, if each connection sends the next one after each response. */
  saturate(connections: number, seconds: number): Promise<number> {
    return this.#ask<number>({ kind: 'saturate', connections, seconds })
  }

  /**
   * Offers so many requests per second, once the server has nothing else to do.
   * @throws {Error} if a response has neither the expected status nor 503.
   */
  offer(rate: number, seconds: number): Promise<OpenLoopResult> {
    return this.#ask<OpenLoopResult>({ kind: 'offer', rate, seconds })
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#exited
  }

  async #ask<Result>(order: Order): Promise<Result> {
    const reply = once(this.#child, 'message')
    this.#child.send(order)
    const [result] = (await Promise.race([reply, this.#exited])) as [Result]
    if (this.#child.exitCode !== null) throw new Error('the load generator failed')
    return result
  }
}
