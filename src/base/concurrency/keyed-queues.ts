/** One bounded queue for each key, so that the tasks of one key do not delay others. */
import { BoundedQueue } from './bounded-queue.ts'

interface Entry {
  readonly queue: BoundedQueue
  callers: number
}

/** A {@link BoundedQueue} for each key, which runs one task at a time. Holds queues only for keys in use. */
export class KeyedQueues {
  readonly #capacity: number
  readonly #entries = new Map<string, Entry>()

  /** @param capacity the maximum number of waiting tasks for one key. */
  constructor(capacity: number) {
    this.#capacity = capacity
  }

  /** The number of waiting tasks of all keys. */
  get waiting(): number {
    let sum = 0
    for (const { queue } of this.#entries.values()) sum += queue.waiting
    return sum
  }

  /** Runs a task once those with the same key have ended. @throws {ServiceError} `overloaded`, `clientClosedRequest` */
  async run<T>(key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const entry = this.#entries.get(key) ?? { queue: new BoundedQueue(1, this.#capacity), callers: 0 }
    this.#entries.set(key, entry)
    entry.callers += 1
    try {
      return await entry.queue.run(work, signal)
    } finally {
      entry.callers -= 1
      if (entry.callers === 0) this.#entries.delete(key)
    }
  }

  /** Rejects waiting tasks. */
  close(): void {
    for (const { queue } of this.#entries.values()) queue.close()
  }
}
