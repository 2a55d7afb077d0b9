import { ServiceError } from '../errors.ts'

interface Waiting {
  begin(): void
  refuse(error: ServiceError): void
}

const clientGone = (): ServiceError => new ServiceError('clientGone', { quiet: true })

/**
 * Runs so many tasks at once; the rest waits in order, up to a bound. Piscina's own queue would
 * do, but for abandoned work: its `signal` also ends the thread of work that has begun, and starts no other for what waits.
 */
export class BoundedQueue {
  readonly #concurrency: number
  readonly #capacity: number
  readonly #patience: number | undefined
  #running = 0
  #closed = false
  /** In order; what waits can leave from anywhere. */
  readonly #waiting = new Set<Waiting>()

  /**
   * @param capacity how many may wait.
   * @param patience milliseconds that each may wait; without it, as long as what is before it takes.
   */
  constructor(concurrency: number, capacity: number, patience?: number) {
    this.#concurrency = concurrency
    this.#capacity = capacity
    this.#patience = patience
  }

  /**
   * @param signal aborted when hardly anybody waits for the outcome any more: then it is not waited for in line. Work that has
   * begun goes on.
   * @throws {ServiceError} before the work has begun: `overloaded` at once or when patience ends; `clientGone`; `draining`
   * once it is closed
   */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#closed) throw new ServiceError('draining')
    if (this.#running < this.#concurrency) this.#running += 1
    else await this.#turn(signal)
    try {
      return await work()
    } finally {
      this.#next()
    }
  }

  /** Refuses what waits, and whatever comes from now on. */
  close(): void {
    this.#closed = true
    for (const { refuse } of this.#waiting) refuse(new ServiceError('draining'))
  }

  #turn(signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted) throw clientGone()
    if (this.#waiting.size >= this.#capacity) throw new ServiceError('overloaded')
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const leave = (): void => {
      this.#waiting.delete(waiting)
      clearTimeout(timer)
      signal?.removeEventListener('abort', abandon)
    }
    const waiting: Waiting = {
      begin() {
        leave()
        resolve()
      },
      refuse(error) {
        leave()
        reject(error)
      },
    }
    const abandon = (): void => waiting.refuse(clientGone())
    const timer =
      this.#patience === undefined
        ? undefined
        : setTimeout(() => waiting.refuse(new ServiceError('overloaded')), this.#patience)
    signal?.addEventListener('abort', abandon)
    this.#waiting.add(waiting)
    return promise
  }

  #next(): void {
    const [first] = this.#waiting
    if (first === undefined) this.#running -= 1
    else first.begin()
  }
}
