/** One instance of the service on a fixed port, however often it is killed and started. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { childrenOf } from '../../../scripts/postgres-server.ts'
import type { Context } from '../../support/build.ts'
import { type Running, startServer } from '../../support/process.ts'

/** Ports that no system assigns by itself: no connection takes one while its instance is down. */
const PORTS = { min: 20_000, max: 32_000 }

/** Milliseconds until an instance that cannot start counts as failed, and between two attempts. */
const START_LIMIT = 20_000
const START_INTERVAL = 200

const isFree = async (port: number): Promise<boolean> => {
  const server = createServer()
  try {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    return true
  } catch {
    return false
  } finally {
    server.close()
  }
}

export const freePort = async (): Promise<number> => {
  for (;;) {
    const port = PORTS.min + Math.floor(Math.random() * (PORTS.max - PORTS.min))
    if (await isFree(port)) return port
  }
}

/** Timestamps of `performance.now()`; `to` is infinite while the span lasts. */
export interface Span {
  readonly from: number
  to: number
}

export const meets = ({ from, to }: Span, start: number, end: number): boolean => from <= end && to >= start

export class Instance {
  readonly name: string
  readonly url: string
  /** When it was down, from the signal until it listened again. */
  readonly downs: Span[] = []
  readonly #context: Context
  readonly #env: Record<string, string>
  #running: Running | null = null

  constructor(context: Context, name: string, port: number, env: Record<string, string>) {
    this.name = name
    this.url = `http://127.0.0.1:${port}`
    this.#context = context
    this.#env = { NODE_ENV: 'production', ...env, PORT: String(port) }
  }

  /** Starts it, repeatedly if needed: without its database it exits at once, and a supervisor starts it again. */
  async start(): Promise<void> {
    const end = performance.now() + START_LIMIT
    while (this.#running === null) {
      try {
        this.#running = await startServer(this.#context, { env: this.#env })
      } catch (error) {
        if (performance.now() > end) throw error
        await sleep(START_INTERVAL)
      }
    }
    const down = this.downs.at(-1)
    if (down !== undefined) down.to = performance.now()
  }

  /** The processes of its workers, with `WORKERS` on PostgreSQL. */
  workers(): number[] {
    const pid = this.#running?.process.pid
    return pid === undefined ? [] : childrenOf(pid)
  }

  /** Sends a signal that does not end it. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#running?.process.kill(signal)
  }

  /** Stops it and waits for its exit. @returns its exit code. */
  async stop(signal: NodeJS.Signals): Promise<number | null> {
    const running = this.#running
    if (running === null) throw new Error(`${this.name} does not run`)
    this.downs.push({ from: performance.now(), to: Number.POSITIVE_INFINITY })
    this.#running = null
    return running.stop(signal)
  }

  /** Whether it was down at any time of the span. */
  wasDown(start: number, end: number): boolean {
    return this.downs.some(down => meets(down, start, end))
  }
}

/** Two instances on one database, named A and B. */
export const startPair = async (
  context: Context,
  env: Record<string, string>,
): Promise<readonly [Instance, Instance]> => {
  const pair = [
    new Instance(context, 'A', await freePort(), env),
    new Instance(context, 'B', await freePort(), env),
  ] as const
  await Promise.all(pair.map(instance => instance.start()))
  return pair
}
