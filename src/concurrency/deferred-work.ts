/**
 * Work that no answer waits for, so that the time of an answer tells nothing about it. It begins after a random delay: at
 * once, it would slow down whatever is answered next, which whoever measures could ask for.
 */
import { randomInt } from 'node:crypto'

/** Milliseconds. */
const MAX_DELAY = 500

/** How often work is tried that fails, each time after twice the delay. */
const ATTEMPTS = 6

/** What may wait; whatever comes later is dropped, and told of. */
const CAPACITY = 10_000

export class DeferredWork {
  readonly #onFailure: (error: unknown) => void
  readonly #waiting = new Map<NodeJS.Timeout, () => Promise<void>>()
  readonly #underWay = new Set<Promise<void>>()
  #closed = false

  /** @param onFailure told of work that was given up. */
  constructor(onFailure: (error: unknown) => void) {
    this.#onFailure = onFailure
  }

  run(work: () => Promise<void>): void {
    if (this.#waiting.size >= CAPACITY) this.#onFailure(new Error('too much is waiting'))
    else this.#schedule(work, 1)
  }

  /** Does at once what waits, and waits for all that is under way. */
  async close(): Promise<void> {
    this.#closed = true
    for (const [timer, begin] of this.#waiting) {
      clearTimeout(timer)
      void begin()
    }
    await Promise.all(this.#underWay)
  }

  #schedule(work: () => Promise<void>, attempt: number): void {
    const begin = (): Promise<void> => {
      this.#waiting.delete(timer)
      const done = this.#attempt(work, attempt)
      this.#underWay.add(done)
      return done.finally(() => this.#underWay.delete(done))
    }
    const timer = setTimeout(begin, randomInt(MAX_DELAY) * 2 ** (attempt - 1))
    this.#waiting.set(timer, begin)
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
