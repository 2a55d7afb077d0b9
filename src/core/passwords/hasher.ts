/**
 * Hashes and verifies passwords in threads with a lower priority than the event loop: a hash of ours takes milliseconds of a core and 19
 * MiB. Imported hashes that cost more, up to 400 times as much, have threads of their own and do not delay others.
 */
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Piscina } from 'piscina'
import { BoundedQueue, KeyedQueues } from '#base/concurrency/bounded-queue'
import { ServiceError } from '#base/errors'
import { DURATIONS, Histogram, type HistogramValue } from '#base/statistics/histogram'
import { relativeCost } from './formats.ts'
import type { Comparison } from './hashing-thread.ts'
import { dummyHash, isWeak } from './our-hash.ts'
import { canonicalPassword, PASSWORD_MAX_LENGTH } from './policy.ts'

export interface LaneStatistics {
  readonly running: number
  readonly waiting: number
  /** Hashes that were rejected with `overloaded`, since the start. */
  readonly rejected: number
  /** Seconds that hashes have waited for a thread. */
  readonly waits: HistogramValue
}

export interface PasswordHasher {
  /**
   * Called before the body of a request that is going to hash is read: rejecting it then costs a third.
   * @returns `overloaded` if the queue of ordinary hashes is full; `null` if there is room.
   */
  refusal(): ServiceError | null
  /**
   * @param signal cancels the hash, unless it has started. @returns the hash in PHC form.
   * @throws {ServiceError} `overloaded`, `clientClosedRequest`, `draining`
   */
  hash(password: string, signal?: AbortSignal): Promise<string>
  /**
   * @param encoded `null` takes as long, so that the response time does not reveal whether there is an account.
   * @throws {ServiceError} `overloaded`, `clientClosedRequest`, `draining`
   */
  verify(password: string, encoded: string | null, signal?: AbortSignal): Promise<boolean>
  close(): Promise<void>
  /** By lane. Absent without threads. */
  readonly statistics?: Readonly<Record<string, LaneStatistics>>
}

/** About a second of work for each thread on idle cores. Further requests get 503 at once. */
const MAX_WAITING_PER_THREAD = 100

/** Ordinary threads per thread of the expensive lane. */
const EXPENSIVE_SHARE = 4

/** Waiting accounts per thread of the expensive lane: ten to thirty seconds if all hashes have the maximum cost. */
const EXPENSIVE_ACCOUNTS_PER_THREAD = 10

/** Waiting sign-ins to one account with an expensive hash. */
const MAX_WAITING_PER_ACCOUNT = 2

/** Milliseconds until an idle thread ends. Starting a new one, and its measurement for paddings, delays a sign-in. */
const IDLE = 30_000

/** Code points take up to two UTF-16 units: no password of ours is longer. */
const MAX_UTF16_LENGTH = 2 * PASSWORD_MAX_LENGTH

/** `nice` of the hashing threads. On a contended core, Linux weights them 110 and 15 to the event loop's 1,024. */
const NICE = { ordinary: 10, expensive: 19 }

/** Created once: capturing the stack, which is not used, would cost half as much again. */
const OVERLOADED = new ServiceError('overloaded')

export interface LaneLimits {
  readonly threads: number
  readonly maxWaiting: number
}

export interface HasherLimits extends LaneLimits {
  /** For hashes that cost more than ours; up to 256 MiB per thread. */
  readonly expensive: LaneLimits & { readonly maxWaitingPerAccount: number }
  /** Milliseconds until an idle thread ends. */
  readonly idle: number
}

/** @param processes the number of processes that share the machine's cores. */
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

export interface LaneOptions extends LaneLimits {
  /** Milliseconds until an idle thread ends. */
  readonly idle: number
  readonly nice: number
}

export class HashingLane {
  readonly #pool: Piscina
  readonly #queue: BoundedQueue
  readonly #waits = new Histogram(DURATIONS)
  #rejected = 0
  #failures = 0

  /** @param onFailure called when a thread cannot start. */
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
      this.#failures += 1
      onFailure(error)
      // Fails the hashes that wait for the thread: Piscina starts no other for them. The next hash starts one.
      this.#pool.destroy()
    })
  }

  get statistics(): LaneStatistics {
    const { running, waiting } = this.#queue
    return { running, waiting, rejected: this.#rejected, waits: this.#waits.value }
  }

  refusal(): ServiceError | null {
    if (!this.#queue.isFull) return null
    this.#rejected += 1
    return OVERLOADED
  }

  /** @param queuedAt milliseconds of `performance.now()`. @throws {ServiceError} `overloaded`, `clientClosedRequest`, `draining` */
  run(
    name: 'hash' | 'verify',
    task: unknown,
    signal: AbortSignal | undefined,
    queuedAt = performance.now(),
  ): Promise<unknown> {
    return this.#queue.run(() => {
      this.#waits.observeSince(queuedAt)
      return this.#runInThread(name, task)
    }, signal)
  }

  async counted<Result>(call: Promise<Result>): Promise<Result> {
    try {
      return await call
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'overloaded') this.#rejected += 1
      throw error
    }
  }

  async #runInThread(name: 'hash' | 'verify', task: unknown): Promise<unknown> {
    const failures = this.#failures
    try {
      return await this.#pool.run(task, { name })
    } catch (cause) {
      // Without descriptors or memory for a thread, the same request may succeed later.
      throw failures === this.#failures ? cause : new ServiceError('overloaded', { cause })
    }
  }

  async close(): Promise<void> {
    this.#queue.close()
    await this.#pool.destroy()
  }
}

/**
 * The forms of a password to compare: as sent, as other services hashed it, and in NFC, as this service does. Also without an account, so
 * that the response time does not reveal it.
 */
const formsOf = (password: string, encoded: string): string[] => {
  const canonical = canonicalPassword(password)
  if (canonical === password) return [password]
  return isWeak(encoded) ? [password, canonical] : [canonical, password]
}

export class PooledPasswordHasher implements PasswordHasher {
  readonly #ordinary: HashingLane
  readonly #expensive: HashingLane
  /** Admits one sign-in per account to the expensive lane, so that accounts take turns. */
  readonly #accounts: KeyedQueues
  /** Compared where there is no hash. */
  readonly #dummyHash = dummyHash()

  /** @param onFailure called when a thread cannot start. */
  constructor(onFailure: (error: unknown) => void, { expensive, idle, ...ordinary }: HasherLimits) {
    this.#ordinary = new HashingLane(onFailure, { ...ordinary, idle, nice: NICE.ordinary })
    this.#expensive = new HashingLane(onFailure, { ...expensive, idle, nice: NICE.expensive })
    this.#accounts = new KeyedQueues(expensive.maxWaitingPerAccount)
  }

  refusal(): ServiceError | null {
    return this.#ordinary.refusal()
  }

  async hash(password: string, signal?: AbortSignal): Promise<string> {
    const hash = this.#ordinary.run('hash', canonicalPassword(password), signal) as Promise<string>
    return this.#ordinary.counted(hash)
  }

  async verify(password: string, encoded: string | null, signal?: AbortSignal): Promise<boolean> {
    // Longer passwords are not normalized: for some texts that takes time quadratic in their length.
    const possible = password.length <= MAX_UTF16_LENGTH
    const hash = encoded ?? this.#dummyHash
    const passwords = possible ? formsOf(password, hash) : ['']
    const matches = await this.#verify({ passwords, encoded: hash }, signal)
    return matches && possible && encoded !== null
  }

  get statistics() {
    const expensive = this.#expensive.statistics
    return {
      ordinary: this.#ordinary.statistics,
      expensive: { ...expensive, waiting: expensive.waiting + this.#accounts.waiting },
    }
  }

  async close(): Promise<void> {
    this.#accounts.close()
    await Promise.all([this.#ordinary.close(), this.#expensive.close()])
  }

  #verify(task: Comparison, signal: AbortSignal | undefined): Promise<boolean> {
    const queuedAt = performance.now()
    const verifyIn = (lane: HashingLane) => lane.run('verify', task, signal, queuedAt) as Promise<boolean>
    if (relativeCost(task.encoded) <= 1) return this.#ordinary.counted(verifyIn(this.#ordinary))
    // The hash is the account's key, because each has its own salt.
    const turn = this.#accounts.run(task.encoded, () => verifyIn(this.#expensive), signal)
    return this.#expensive.counted(turn)
  }
}
