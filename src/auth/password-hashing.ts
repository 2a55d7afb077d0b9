/**
 * Hashing off the event loop, behind a bounded queue. One hash costs about 10 ms of a core and 19 MiB, so the
 * threads run at lower priority than the event loop: where both want a core, a request goes before a hash.
 */
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Piscina } from 'piscina'
import { BoundedQueue } from '../concurrency/bounded-queue.ts'
import { hashOfNobody } from './argon2-hash.ts'
import type { Hashing } from './hashing.ts'
import { canonicalPassword, PASSWORD_MAX_LENGTH } from './passwords.ts'

/** About a second of work for each thread, on cores that have nothing else to do; whoever comes later is told so at once. */
const MAX_WAITING_PER_THREAD = 100

/** Milliseconds until a thread that has nothing to do ends: a new one costs a sign-in about 50 ms. */
const IDLE = 30_000

/** Code points take up to two UTF-16 units: whatever is longer is no password of ours. */
const MAX_UTF16_LENGTH = 2 * PASSWORD_MAX_LENGTH

/** `nice` of the hashing threads: by Linux's weights, 110 to the event loop's 1,024 on a core that both want. */
const NICE = 10

export interface HashingLimits {
  readonly threads: number
  readonly maxWaiting: number
  /** Milliseconds. */
  readonly idle: number
}

/** @param processes how many share the machine's cores. */
export const hashingLimits = (processes: number): HashingLimits => {
  const threads = Math.max(1, Math.floor(availableParallelism() / processes))
  return { threads, maxWaiting: threads * MAX_WAITING_PER_THREAD, idle: IDLE }
}

export class PasswordHashing implements Hashing {
  readonly #pool: Piscina
  readonly #queue: BoundedQueue
  /** What a password is compared with when there is no account. */
  readonly #nobody = hashOfNobody()

  /** @param onFailure told why a thread could not start. */
  constructor(onFailure: (error: unknown) => void, { threads, maxWaiting, idle }: HashingLimits) {
    this.#queue = new BoundedQueue(threads, maxWaiting)
    this.#pool = new Piscina({
      filename: fileURLToPath(new URL('./hashing-thread.ts', import.meta.url)),
      minThreads: 0,
      maxThreads: threads,
      idleTimeout: idle,
      niceIncrement: NICE,
      atomics: 'disabled',
      execArgv: [],
    })
    this.#pool.on('error', error => {
      onFailure(error)
      // Fails the hashes that wait for the thread, for which Piscina starts no other; the next hash does.
      this.#pool.destroy()
    })
  }

  async hash(password: string, signal?: AbortSignal): Promise<string> {
    return this.#run('hash', canonicalPassword(password), signal) as Promise<string>
  }

  async verify(password: string, encoded: string | null, signal?: AbortSignal): Promise<boolean> {
    // What no password can be is not looked at: normalising takes time in the square of some texts' length.
    const possible = password.length <= MAX_UTF16_LENGTH
    const task = { password: possible ? canonicalPassword(password) : '', encoded: encoded ?? this.#nobody }
    const matches = (await this.#run('verify', task, signal)) as boolean
    return matches && possible && encoded !== null
  }

  async close(): Promise<void> {
    this.#queue.close()
    await this.#pool.destroy()
  }

  #run(name: string, task: unknown, signal: AbortSignal | undefined): Promise<unknown> {
    return this.#queue.run(() => this.#pool.run(task, { name }), signal)
  }
}
