import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Piscina } from 'piscina'
import { BoundedQueue } from '../concurrency/bounded-queue.ts'
import { KeyedQueues } from '../concurrency/keyed-queues.ts'
import { dummyHash, isWeak, relativeCost } from './formats.ts'
import type { Comparison } from './hashing-thread.ts'
import { canonicalPassword, PASSWORD_MAX_LENGTH } from './policy.ts'

/** What passwords are hashed and compared with. */
export interface PasswordHasher {
  /**
   * @param signal aborted when nobody waits for the hash any more: it is not computed then, unless it has begun.
   * @returns the hash in PHC form.
   * @throws {ServiceError} `overloaded`, `clientGone`, `draining`
   */
  hash(password: string, signal?: AbortSignal): Promise<string>
  /**
   * Costs the same whether there is a hash to compare with or not, so that the time of an answer does not tell whether
   * an account exists.
   * @throws {ServiceError} `overloaded`, `clientGone`, `draining`
   */
  verify(password: string, encoded: string | null, signal?: AbortSignal): Promise<boolean>
  close(): Promise<void>
}

/** Threads that hash, behind a bounded queue. They start when there is work, and end when there has been none. */

export interface LaneLimits {
  readonly threads: number
  readonly maxWaiting: number
}

export interface LaneOptions extends LaneLimits {
  /** Milliseconds until a thread that has nothing to do ends. */
  readonly idle: number
  /** `nice` of the threads. */
  readonly nice: number
}

export class HashingLane {
  readonly #pool: Piscina
  readonly #queue: BoundedQueue

  /** @param onFailure told why a thread could not start. */
  constructor(onFailure: (error: unknown) => void, { threads, maxWaiting, idle, nice }: LaneOptions) {
    this.#queue = new BoundedQueue(threads, maxWaiting)
    this.#pool = new Piscina({
      filename: fileURLToPath(new URL('./hashing-thread.ts', import.meta.url)),
      minThreads: 0,
      maxThreads: threads,
      idleTimeout: idle,
      niceIncrement: nice,
      atomics: 'disabled',
      execArgv: [],
    })
    this.#pool.on('error', error => {
      onFailure(error)
      // Fails the hashes that wait for the thread, for which Piscina starts no other; the next hash does.
      this.#pool.destroy()
    })
  }

  /** @throws {ServiceError} `overloaded`, `clientGone`, `draining` */
  run(name: 'hash' | 'verify', task: unknown, signal: AbortSignal | undefined): Promise<unknown> {
    return this.#queue.run(() => this.#pool.run(task, { name }), signal)
  }

  async close(): Promise<void> {
    this.#queue.close()
    await this.#pool.destroy()
  }
}

/**
 * PasswordHasher off the event loop, queued by cost. One of our hashes costs about 10 ms of a core and 19 MiB, so the threads
 * run at lower priority than the event loop: where both want a core, a request goes before a hash. Imported hashes that cost
 * more than ours, up to 400 times as much, have a lane of their own: nobody else waits for them.
 */

/** About a second of work for each thread, on cores that have nothing else to do; whoever comes later is told so at once. */
const MAX_WAITING_PER_THREAD = 100

/** Ordinary threads for each thread of the expensive lane. */
const EXPENSIVE_SHARE = 4

/** Accounts with expensive hashes that wait for each thread of their lane: ten to thirty seconds when all are the most expensive. */
const EXPENSIVE_ACCOUNTS_PER_THREAD = 10

/** Sign-ins to one account with an expensive hash that wait while another one to it is under way. */
const MAX_WAITING_PER_ACCOUNT = 2

/** Milliseconds until a thread that has nothing to do ends: a new one costs a sign-in about 50 ms. */
const IDLE = 30_000

/** Code points take up to two UTF-16 units: whatever is longer is no password of ours. */
const MAX_UTF16_LENGTH = 2 * PASSWORD_MAX_LENGTH

/**
 * `nice` of the hashing threads: by Linux's weights, 110 to the event loop's 1,024 on a core that both want, and 15 where
 * expensive hashes want it too.
 */
const NICE = { ordinary: 10, expensive: 19 }

export interface HasherLimits extends LaneLimits {
  /** For hashes that cost more than ours; its memory is up to 256 MiB a thread. */
  readonly expensive: LaneLimits & { readonly maxWaitingPerAccount: number }
  /** Milliseconds. */
  readonly idle: number
}

/** @param processes how many share the machine's cores. */
export const hasherLimits = (processes: number): HasherLimits => {
  const threads = Math.max(1, Math.floor(availableParallelism() / processes))
  const expensive = Math.max(1, Math.floor(threads / EXPENSIVE_SHARE))
  return {
    threads,
    maxWaiting: threads * MAX_WAITING_PER_THREAD,
    expensive: {
      threads: expensive,
      maxWaiting: expensive * EXPENSIVE_ACCOUNTS_PER_THREAD,
      maxWaitingPerAccount: MAX_WAITING_PER_ACCOUNT,
    },
    idle: IDLE,
  }
}

/**
 * The forms in which a password is compared: as it was sent, which is what other services have hashed, and composed, which
 * is what this one hashes. Both, also where there is no account, so that the time of an answer does not tell.
 */
const formsOf = (password: string, encoded: string): string[] => {
  const canonical = canonicalPassword(password)
  if (canonical === password) return [password]
  return isWeak(encoded) ? [password, canonical] : [canonical, password]
}

export class PooledPasswordHasher implements PasswordHasher {
  readonly #ordinary: HashingLane
  readonly #expensive: HashingLane
  /** One at a time of each account enters the expensive lane, so that accounts take turns in it. */
  readonly #accounts: KeyedQueues
  /** What a password is compared with when there is no account. */
  readonly #nobody = dummyHash()

  /** @param onFailure told why a thread could not start. */
  constructor(onFailure: (error: unknown) => void, { expensive, idle, ...ordinary }: HasherLimits) {
    this.#ordinary = new HashingLane(onFailure, { ...ordinary, idle, nice: NICE.ordinary })
    this.#expensive = new HashingLane(onFailure, { ...expensive, idle, nice: NICE.expensive })
    this.#accounts = new KeyedQueues(expensive.maxWaitingPerAccount)
  }

  async hash(password: string, signal?: AbortSignal): Promise<string> {
    return this.#ordinary.run('hash', canonicalPassword(password), signal) as Promise<string>
  }

  async verify(password: string, encoded: string | null, signal?: AbortSignal): Promise<boolean> {
    // What no password can be is not looked at: normalising takes time in the square of some texts' length.
    const possible = password.length <= MAX_UTF16_LENGTH
    const hash = encoded ?? this.#nobody
    const passwords = possible ? formsOf(password, hash) : ['']
    const matches = await this.#verify({ passwords, encoded: hash }, signal)
    return matches && possible && encoded !== null
  }

  async close(): Promise<void> {
    this.#accounts.close()
    await Promise.all([this.#ordinary.close(), this.#expensive.close()])
  }

  #verify(task: Comparison, signal: AbortSignal | undefined): Promise<boolean> {
    const verifyIn = (lane: HashingLane) => lane.run('verify', task, signal) as Promise<boolean>
    if (relativeCost(task.encoded) <= 1) return verifyIn(this.#ordinary)
    // A hash has a salt of its own, so it stands for its account.
    return this.#accounts.run(task.encoded, () => verifyIn(this.#expensive), signal)
  }
}
