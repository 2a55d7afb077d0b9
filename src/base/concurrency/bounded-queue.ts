/** A queue that runs a limited number of tasks at once and rejects what exceeds its bound. */
import { ServiceError } from '../errors.ts'

interface Waiting {
  start(): void
  reject(error: ServiceError): void
}

const clientClosedRequest = (): ServiceError => new ServiceError('clientClosedRequest', { quiet: true })

/**
 * Runs a limited number of tasks at once; further tasks wait in order, up to a bound. Piscina's own queue does not fit: its
 * `signal` also ends the thread of a task that has started, and starts no other thread for the waiting tasks.
 */
export class BoundedQueue {
  readonly #concurrency: number
  readonly #capacity: number
  readonly #timeout: number | undefined
  #running = 0
  #closed = false
  /** In order of arrival. A set, because an abort removes tasks from the middle. */
  readonly #waiting = new Set<Waiting>()

  /**
   * @param capacity the maximum number of waiting tasks.
   * @param timeout the maximum milliseconds that a task waits; by default without limit.
   */
  constructor(concurrency: number, capacity: number, timeout?: number) {
    this.#concurrency = concurrency
    this.#capacity = capacity
    this.#timeout = timeout
  }

  get running(): number {
    return this.#running
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** Whether {@link run} would reject a task with `overloaded` now. */
  get isFull(): boolean {
    return this.#running >= this.#concurrency && this.#waiting.size >= this.#capacity
  }

  /**
   * @param signal removes the task from the queue when it is aborted. A task that has started continues.
   * @throws {ServiceError} before the task starts: `overloaded` if the queue is full or the timeout is over; `clientClosedRequest` if
   * aborted; `draining` if closed
   */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#closed) throw new ServiceError('draining')
    if (this.#running < this.#concurrency) this.#running += 1
    else await this.#wait(signal)
    try {
      return await work()
    } finally {
      this.#next()
    }
  }

  /** Rejects waiting tasks, and all later ones. */
  close(): void {
    this.#closed = true
    for (const { reject } of this.#waiting) reject(new ServiceError('draining'))
  }

  #wait(signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted) throw clientClosedRequest()
    if (this.#waiting.size >= this.#capacity) throw new ServiceError('overloaded')
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const leave = (): void => {
      this.#waiting.delete(waiting)
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    }
    const waiting: Waiting = {
      start() {
        leave()
        resolve()
      },
      reject(error) {
        leave()
        reject(error)
      },
    }
    const abort = (): void => waiting.reject(clientClosedRequest())
    const timer =
      this.#timeout === undefined
        ? undefined
        : setTimeout(() => waiting.reject(new ServiceError('overloaded')), this.#timeout)
    signal?.addEventListener('abort', abort)
    this.#waiting.add(waiting)
    return promise
  }

  #next(): void {
    const [first] = this.#waiting
    if (first === undefined) this.#running -= 1
    else first.start()
  }
}

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

  close(): void {
    for (const { queue } of this.#entries.values()) queue.close()
  }
}
