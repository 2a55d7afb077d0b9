/**
 * Hashing off the event loop, in a bounded queue. One hash costs about 8 ms of a core and 19 MiB, so the threads run at
 * lower priority than the event loop: when everybody signs in at once, the other routes stay fast.
 */
import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Piscina } from 'piscina'
import { ServiceError } from '../errors.ts'
import { canonicalPassword, PASSWORD_MAX_LENGTH } from './passwords.ts'

/** About a second of work for each thread, on cores that have nothing else to do; whoever comes later is told so at once. */
const MAX_WAITING_PER_THREAD = 100

/** Code points take up to two UTF-16 units: whatever is longer is no password of ours. */
const MAX_UTF16_LENGTH = 2 * PASSWORD_MAX_LENGTH

/** `nice` of the hashing threads: by Linux's weights, 110 to the event loop's 1,024 on a core that both want. */
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
  #nobody: Promise<string> | null = null

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
    // Made before it is needed, so that the first unknown e-mail takes no longer than the others.
    this.#hashOfNobody().catch(() => undefined)
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
    // What no password can be is not looked at: normalising takes time in the square of some texts' length.
    const possible = password.length <= MAX_UTF16_LENGTH
    const against = encoded ?? (await this.#hashOfNobody())
    const task = { password: possible ? canonicalPassword(password) : '', encoded: against }
    const matches = (await this.#run('verify', task)) as boolean
    return matches && possible && encoded !== null
  }

  async close(): Promise<void> {
    await this.#pool.destroy()
  }

  #hashOfNobody(): Promise<string> {
    this.#nobody ??= this.#pool.run(randomBytes(32).toString('base64url'), { name: 'hash' }).catch(error => {
      this.#nobody = null
      throw error
    })
    return this.#nobody
  }

  async #run(name: string, task: unknown): Promise<unknown> {
    if (this.#pool.queueSize >= this.#maxWaiting) throw new ServiceError('overloaded')
    return this.#pool.run(task, { name })
  }
}
