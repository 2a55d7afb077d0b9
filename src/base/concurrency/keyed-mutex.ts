/** Serializes work on the same key. Holds an entry only for keys in use. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<void>>()

  /** @param work receives whether it had to wait for other work on the key. */
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
