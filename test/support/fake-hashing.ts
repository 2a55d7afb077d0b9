/** Replaces hashing threads in tests of other things. */
import { createHash } from 'node:crypto'
import { BoundedQueue } from '#base/concurrency/bounded-queue'
import { ServiceError } from '#base/errors'
import type { PasswordHasher } from '#core/passwords/hasher'
import { dummyHash } from '#core/passwords/our-hash'

const HASH = dummyHash()
const PARAMETERS = HASH.split('$').slice(0, -1).join('$')

const encode = (password: string): string =>
  `${PARAMETERS}$${createHash('sha256').update(password).digest('base64').replace(/=+$/, '')}`

/** Hashes in the correct form that verify correctly, without cost. */
export const quickHashing: PasswordHasher = {
  refusal: () => null,
  hash: async password => encode(password),
  verify: async (password, encoded) => encode(password) === encoded,
  close: async () => undefined,
}

/** Constants instead of hashes, one at a time, each when the test asks for it. */
export class HeldHashing implements PasswordHasher {
  /** Passwords whose hash has started. */
  readonly begun: string[] = []
  readonly #queue = new BoundedQueue(1, 2)
  #held = Promise.withResolvers<void>()

  #run<T>(password: string, outcome: T, signal: AbortSignal | undefined): Promise<T> {
    const work = async (): Promise<T> => {
      this.begun.push(password)
      await this.#held.promise
      return outcome
    }
    return this.#queue.run(work, signal)
  }

  refusal = () => (this.#queue.isFull ? new ServiceError('overloaded') : null)
  hash = (password: string, signal?: AbortSignal) => this.#run(password, HASH, signal)
  verify = (password: string, encoded: string | null, signal?: AbortSignal) =>
    this.#run(password, encoded !== null, signal)
  close = async () => this.#queue.close()
  release = () => this.#held.resolve()
  hold = () => {
    this.#held = Promise.withResolvers()
  }
}
