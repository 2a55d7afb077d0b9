/** Threads that hash, behind a bounded queue. They start when there is work, and end when there has been none. */
import { fileURLToPath } from 'node:url'
import { Piscina } from 'piscina'
import { BoundedQueue } from '../concurrency/bounded-queue.ts'

export interface LaneLimits {
  readonly threads: number
  readonly maxWaiting: number
}

export interface LaneOptions extends LaneLimits {
  /** Milliseconds until a thread that has nothing to do ends. */
  readonly idle: number
  /** `nice` of the threads. */
  readonly nice: number
}

export class HashingLane {
  readonly #pool: Piscina
  readonly #queue: BoundedQueue

  /** @param onFailure told why a thread could not start. */
  constructor(onFailure: (error: unknown) => void, { threads, maxWaiting, idle, nice }: LaneOptions) {
    this.#queue = new BoundedQueue(threads, maxWaiting)
    this.#pool = new Piscina({
      filename: fileURLToPath(new URL('./hashing-thread.ts', import.meta.url)),
      minThreads: 0,
      maxThreads: threads,
      idleTimeout: idle,
      niceIncrement: nice,
      atomics: 'disabled',
      execArgv: [],
    })
    this.#pool.on('error', error => {
      onFailure(error)
      // Fails the hashes that wait for the thread, for which Piscina starts no other; the next hash does.
      this.#pool.destroy()
    })
  }

  /** @throws {ServiceError} `overloaded`, `clientGone`, `draining` */
  run(name: 'hash' | 'verify', task: unknown, signal: AbortSignal | undefined): Promise<unknown> {
    return this.#queue.run(() => this.#pool.run(task, { name }), signal)
  }

  async close(): Promise<void> {
    this.#queue.close()
    await this.#pool.destroy()
  }
}
