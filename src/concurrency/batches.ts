/** Spreads thousands of small tasks that arrive at once over rounds of the event loop. */
export class Batches {
  readonly #size: number
  readonly #waiting: (() => void)[] = []
  #scheduled = false

  /** @param size tasks in one round. */
  constructor(size: number) {
    this.#size = size
  }

  /** Queues a task. Tasks run in order and must not throw. */
  run(work: () => void): void {
    this.#waiting.push(work)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled || this.#waiting.length === 0) return
    this.#scheduled = true
    setImmediate(() => {
      for (const work of this.#waiting.splice(0, this.#size)) work()
      this.#scheduled = false
      this.#schedule()
    })
  }
}
