import { BoundedQueue } from '../../src/auth/bounded-queue.ts'
import { hashOfNobody } from '../../src/auth/hash-parameters.ts'
import type { Hashing } from '../../src/auth/hashing.ts'

const HASH = hashOfNobody()

/** Constants in place of hashes, one at a time, each when the test says so. */
export class HeldHashing implements Hashing {
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
