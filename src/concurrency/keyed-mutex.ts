/** Lets work on the same key go one after the other. Holds one entry for each key that is being worked on, no more. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<void>>()

  /** @param work told whether it had to wait for another's. */
  async runExclusive<T>(key: string, work: (waited: boolean) => Promise<T>): Promise<T> {
    const before = this.#last.get(key)
    const mine = Promise.withResolvers<void>()
    this.#last.set(key, mine.promise)
    if (before !== undefined) await before
    try {
      return await work(before !== undefined)
    } finally {
      if (this.#last.get(key) === mine.promise) this.#last.delete(key)
      mine.resolve()
    }
  }
}
