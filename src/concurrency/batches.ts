/** Small pieces of work that may come by the thousand at one timestamp: so many in each round of the event loop. */
export class Batches {
  readonly #size: number
  readonly #waiting: (() => void)[] = []
  #scheduled = false

  /** @param size pieces in one round. */
  constructor(size: number) {
    this.#size = size
  }

  /** Does the work in order, soon. It must not throw. */
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
