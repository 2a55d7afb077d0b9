/**
 * Runs work after the response, so that response times do not reveal it. It starts after a random delay: started at once, it
 * would slow down the next response, which an attacker could measure.
 */
import { randomInt } from 'node:crypto'

/** Maximum milliseconds until the first attempt. */
const MAX_DELAY = 500

/** Maximum attempts for work that fails. The maximum delay doubles each time. */
const ATTEMPTS = 6

/** Maximum number of waiting tasks. Further ones are dropped and reported as failures. */
const CAPACITY = 10_000

export class DeferredWork {
  readonly #onFailure: (error: unknown) => void
  readonly #maxDelay: number
  readonly #waiting = new Map<NodeJS.Timeout, () => Promise<void>>()
  readonly #running = new Set<Promise<void>>()
  #closed = false

  /**
   * @param onFailure called with the error of work that was given up.
   * @param maxDelay milliseconds until the first attempt, at most.
   */
  constructor(onFailure: (error: unknown) => void, maxDelay = MAX_DELAY) {
    this.#onFailure = onFailure
    this.#maxDelay = maxDelay
  }

  /** Returns at once; errors go to `onFailure`. */
  run(work: () => Promise<void>): void {
    if (this.#waiting.size >= CAPACITY) this.#onFailure(new Error('the queue is full'))
    else this.#schedule(work, 1)
  }

  /** Runs waiting work at once, and resolves when all work has ended. */
  async close(): Promise<void> {
    this.#closed = true
    for (const [timer, start] of this.#waiting) {
      clearTimeout(timer)
      void start()
    }
    await Promise.all(this.#running)
  }

  #schedule(work: () => Promise<void>, attempt: number): void {
    const start = (): Promise<void> => {
      this.#waiting.delete(timer)
      const done = this.#attempt(work, attempt)
      this.#running.add(done)
      return done.finally(() => this.#running.delete(done))
    }
    const timer = setTimeout(start, randomInt(this.#maxDelay) * 2 ** (attempt - 1))
    this.#waiting.set(timer, start)
  }

  async #attempt(work: () => Promise<void>, attempt: number): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (attempt === ATTEMPTS || this.#closed) this.#onFailure(error)
      else this.#schedule(work, attempt + 1)
    }
  }
}
