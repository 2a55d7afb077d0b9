/** In place of threads that hash, where what is tested is not hashing. */
import { createHash } from 'node:crypto'
import { BoundedQueue } from '../../src/concurrency/bounded-queue.ts'
import { dummyHash } from '../../src/passwords/formats.ts'
import type { PasswordHasher } from '../../src/passwords/hasher.ts'

const HASH = dummyHash()
const PARAMETERS = HASH.split('$').slice(0, -1).join('$')

const encode = (password: string): string =>
  `${PARAMETERS}$${createHash('sha256').update(password).digest('base64').replace(/=+$/, '')}`

/** True to the form, right and wrong, at no cost. */
export const quickHashing: PasswordHasher = {
  hash: async password => encode(password),
  verify: async (password, encoded) => encode(password) === encoded,
  close: async () => undefined,
}

/** Constants in place of hashes, one at a time, each when the test says so. */
export class HeldHashing implements PasswordHasher {
  /** Passwords whose hash has begun. */
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

  hash = (password: string, signal?: AbortSignal) => this.#run(password, HASH, signal)
  verify = (password: string, encoded: string | null, signal?: AbortSignal) =>
    this.#run(password, encoded !== null, signal)
  close = async () => this.#queue.close()
  release = () => this.#held.resolve()
  hold = () => {
    this.#held = Promise.withResolvers()
  }
}
