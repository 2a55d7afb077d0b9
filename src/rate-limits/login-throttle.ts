/**
 * The limit on password attempts for one account. Attempts are counted before hashing, so that a thousand parallel ones do
 * not all pass; and also without an account, so that a refusal does not reveal whether there is one.
 */
import { type Actor, actingUser, anonymous } from '../audit-log/event.ts'
import { ServiceError } from '../errors.ts'
import type { User } from '../users/user.ts'
import { emailKey, type LoginThrottleLimits, type OpenRateLimit, type RateLimit } from './limits.ts'

/** A password attempt: its account and its actor. */
export interface LoginSubject {
  /** The key of the counters. */
  readonly key: string
  /** In canonical form; there may be no such account. */
  readonly email: string
  readonly actor: Actor
}

export interface LoginThrottle {
  /**
   * @param subject {@link emailSubject} or {@link userSubject}.
   * @param verify returns `undefined` for a wrong password. If it throws, the attempt does not count.
   * @throws {ServiceError} `tooManyRequests` before `verify` is called; errors of `verify`
   */
  check<Result>(subject: LoginSubject, verify: () => Promise<Result | undefined>): Promise<Result | undefined>
}

/** A client that is not signed in to the account. */
export const emailSubject = (email: string, ip: string | null): LoginSubject => ({
  key: `email:${emailKey(email)}`,
  email,
  actor: anonymous(ip),
})

/** The account's own user, signed in: other clients cannot throttle them, and a stolen session cannot try passwords without limit. */
export const userSubject = ({ id, email }: User, ip: string | null): LoginSubject => ({
  key: `user:${id}`,
  email,
  actor: actingUser(id, ip),
})

/** An attempt that was allowed and counted. */
interface Attempt {
  /** Does not count it. */
  cancel(): Promise<unknown>
  /** Clears all counters, after the correct password. */
  succeed(): Promise<unknown>
}

export class StoredLoginThrottle implements LoginThrottle {
  readonly #limits: LoginThrottleLimits
  /** Attempts without a wait. It also counts refused attempts, so it only tells that the free ones are used. */
  readonly #free: RateLimit
  /** Allows one attempt, then none until the wait is over. One atomic operation of the store, so parallel attempts cannot all pass. */
  readonly #gate: RateLimit
  /** How many attempts passed the gate. */
  readonly #waits: RateLimit
  readonly #onThrottled: (subject: LoginSubject, seconds: number) => void

  /** @param onThrottled called for each refused attempt, with the seconds to wait. */
  constructor(
    open: OpenRateLimit,
    limits: LoginThrottleLimits,
    onThrottled: (subject: LoginSubject, seconds: number) => void,
  ) {
    const { free, memory, firstWait, longestWait } = limits
    this.#limits = limits
    this.#onThrottled = onThrottled
    this.#free = open({ name: 'password-guesses', points: free, seconds: memory })
    this.#gate = open({ name: 'password-gate', points: 1, seconds: firstWait })
    this.#waits = open({ name: 'password-waits', points: 0, seconds: memory + longestWait })
  }

  async check<Result>(
    subject: LoginSubject,
    verify: () => Promise<Result | undefined>,
  ): Promise<Result | undefined> {
    const attempt = await this.#admit(subject)
    let result: Result | undefined
    try {
      result = await verify()
    } catch (error) {
      await attempt.cancel()
      throw error
    }
    if (result !== undefined) await attempt.succeed()
    return result
  }

  async #admit(subject: LoginSubject): Promise<Attempt> {
    const { key } = subject
    const { free, memory, firstWait, longestWait } = this.#limits
    if ((await this.#free.consume(key)).allowed) {
      // While attempts are free, the other counters are empty.
      return { cancel: () => this.#free.giveBack(key), succeed: () => this.#free.delete(key) }
    }
    const waits = await this.#waits.used(key)
    const wait = Math.min(firstWait * 2 ** waits, longestWait)
    const { allowed, seconds } = await this.#gate.consume(key, wait)
    if (!allowed) {
      // Windows end by the clock, which may have been set back.
      const left = Math.min(seconds, wait)
      this.#onThrottled(subject, left)
      throw new ServiceError('tooManyRequests', {
        headers: { 'retry-after': String(left) },
        sampledAs: 'password-guesses',
      })
    }
    // The memory begins with this attempt, not with the first one: otherwise attempts became free again every few minutes.
    const countedFor = wait + memory
    await Promise.all([
      this.#waits.set(key, waits + 1, countedFor),
      this.#free.set(key, free + 1, countedFor),
    ])
    return {
      // A client must not affect the wait of others by aborting an attempt that passed the gate.
      cancel: async () => undefined,
      succeed: () => Promise.all([this.#free, this.#gate, this.#waits].map(limit => limit.delete(key))),
    }
  }
}

/** For `RATE_LIMIT=off`. */
export const noLoginThrottle: LoginThrottle = { check: (_subject, verify) => verify() }
