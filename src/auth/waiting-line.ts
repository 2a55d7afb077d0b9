import { ServiceError } from '../errors.ts'

interface Waiting {
  begin(): void
  refuse(error: ServiceError): void
}

/**
 * Lets so much work run at once; the rest waits in order, as much of it as there is room for. Piscina's own queue would
 * do, but for abandoned work: its `signal` also ends the thread of work that has begun, and starts no other for what waits.
 */
export class WaitingLine {
  #width: number
  #room: number
  #running = 0
  /** In order; what waits can leave from anywhere. */
  readonly #waiting = new Set<Waiting>()

  constructor(width: number, room: number) {
    this.#width = width
    this.#room = room
  }

  /**
   * @param signal aborted when nobody waits for the outcome any more. Work that has begun goes on.
   * @throws {ServiceError} before the work has begun: `overloaded` at once, `clientGone`, `draining`
   */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (signal?.aborted) throw new ServiceError('clientGone', { quiet: true })
    if (this.#running < this.#width) this.#running += 1
    else await this.#turn(signal)
    try {
      return await work()
    } finally {
      this.#next()
    }
  }

  /** Refuses what waits, and whatever comes from now on. */
  close(): void {
    this.#width = 0
    this.#room = 0
    for (const { refuse } of this.#waiting) refuse(new ServiceError('draining'))
  }

  #turn(signal: AbortSignal | undefined): Promise<void> {
    if (this.#waiting.size >= this.#room) throw new ServiceError('overloaded')
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const leave = (): void => {
      this.#waiting.delete(waiting)
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
    const abandon = (): void => waiting.refuse(new ServiceError('clientGone', { quiet: true }))
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
