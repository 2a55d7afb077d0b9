/**
 * Hashing off the event loop, in a bounded queue. One hash costs about 8 ms of a core and 19 MiB, so the threads run at
 * lower priority than the event loop: when everybody signs in at once, the other routes stay fast.
 */
import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Piscina } from 'piscina'
import { ServiceError } from '../errors.ts'
import { isWeak } from './hash-parameters.ts'
import { canonicalPassword } from './passwords.ts'

/** About two seconds of work for each thread; whoever comes later is told so at once. */
const MAX_WAITING_PER_THREAD = 250

/** `nice` of the hashing threads: 10 gives them about a tenth of a contended core. */
const NICE = 10

export interface HashingLimits {
  readonly threads: number
  readonly maxWaiting: number
}

const defaults = (): HashingLimits => {
  const threads = availableParallelism()
  return { threads, maxWaiting: threads * MAX_WAITING_PER_THREAD }
}

export class PasswordHashing {
  readonly #pool: Piscina
  readonly #maxWaiting: number
  /** What a password is compared with when there is no account. */
  readonly #hashOfNobody: Promise<string>

  constructor({ threads, maxWaiting }: HashingLimits = defaults()) {
    this.#maxWaiting = maxWaiting
    this.#pool = new Piscina({
      filename: fileURLToPath(new URL('./hashing-thread.ts', import.meta.url)),
      minThreads: threads,
      maxThreads: threads,
      niceIncrement: NICE,
      atomics: 'disabled',
      execArgv: [],
    })
    this.#hashOfNobody = this.#pool.run(randomBytes(32).toString('base64url'), { name: 'hash' })
    // A pool that is closed before it has made one: nobody is waiting for it.
    this.#hashOfNobody.catch(() => undefined)
  }

  /** @throws {ServiceError} `overloaded` */
  async hash(password: string): Promise<string> {
    return this.#run('hash', canonicalPassword(password)) as Promise<string>
  }

  /**
   * Costs the same whether there is a hash to compare with or not, so that the time of an answer does not tell whether
   * an account exists.
   * @throws {ServiceError} `overloaded`
   */
  async verify(password: string, encoded: string | null): Promise<boolean> {
    const against = encoded ?? (await this.#hashOfNobody)
    const matches = (await this.#run('verify', {
      password: canonicalPassword(password),
      encoded: against,
    })) as boolean
    return matches && encoded !== null
  }

  isWeak(encoded: string): boolean {
    return isWeak(encoded)
  }

  async close(): Promise<void> {
    await this.#pool.destroy()
  }

  async #run(name: string, task: unknown): Promise<unknown> {
    if (this.#pool.queueSize >= this.#maxWaiting) throw new ServiceError('overloaded')
    return this.#pool.run(task, { name })
  }
}
