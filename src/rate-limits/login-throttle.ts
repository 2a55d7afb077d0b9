/**
 * The limit on password attempts for one account. Attempts are counted before hashing, so that a thousand parallel ones do
 * not all pass; and also without an account, so that a rejection does not reveal whether there is one.
 */
import { type Actor, actingUser, anonymous } from '../audit-log/event.ts'
import { ServiceError } from '../errors.ts'
import type { User } from '../users/user.ts'
import type { LoginThrottleLimits } from './limits.ts'
import { emailKey, type OpenRateLimit, type RateLimit } from './rate-limit.ts'

/** A password attempt: its account and its actor. */
export interface LoginSubject {
  /** The key of the counters. */
  readonly key: string
  /** Whether the key is an account's own. Strangers choose the others. */
  readonly isOfUser: boolean
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
  isOfUser: false,
  email,
  actor: anonymous(ip),
})

/** The account's own user, signed in: other clients cannot throttle them, and a stolen session cannot try passwords without limit. */
export const userSubject = ({ id, email }: User, ip: string | null): LoginSubject => ({
  key: `user:${id}`,
  isOfUser: true,
  email,
  actor: actingUser(id, ip),
})

/** Codes of a user, wherever they are sent: in all, nobody can try more than the limit. */
export const codeSubject = ({ id, email }: User, ip: string | null): LoginSubject => ({
  key: `code:${id}`,
  isOfUser: true,
  email,
  actor: anonymous(ip),
})

/** An attempt that was allowed and counted. */
interface Attempt {
  /** Does not count it. */
  cancel(): Promise<unknown>
  /** Clears all counters, after the correct password. */
  succeed(): Promise<unknown>
}

interface Counters {
  /** Also counts rejected attempts: only shows that no free attempt is left. */
  readonly freeAttempts: RateLimit
  /** Allows one attempt, then none until the delay is over. One atomic operation of the store, so parallel attempts cannot all pass. */
  readonly lock: RateLimit
  /** How many attempts passed the lock. */
  readonly lockCount: RateLimit
}

export class StoredLoginThrottle implements LoginThrottle {
  readonly #limits: LoginThrottleLimits
  readonly #ofAddresses: Counters
  /** Apart, because memory for counters is bounded: attempts on many addresses must not evict the count of a user's codes. */
  readonly #ofUsers: Counters
  readonly #onThrottled: (subject: LoginSubject, seconds: number) => void

  /** @param onThrottled called for each rejected attempt, with the seconds to wait. */
  constructor(
    open: OpenRateLimit,
    limits: LoginThrottleLimits,
    onThrottled: (subject: LoginSubject, seconds: number) => void,
  ) {
    const { freeAttempts, window, initialDelay, maxDelay } = limits
    const countersOf = (name: string): Counters => ({
      freeAttempts: open({ name: `${name}-attempts`, points: freeAttempts, seconds: window }),
      lock: open({ name: `${name}-lock`, points: 1, seconds: initialDelay }),
      lockCount: open({ name: `${name}-lock-count`, points: 0, seconds: window + maxDelay }),
    })
    this.#limits = limits
    this.#onThrottled = onThrottled
    this.#ofAddresses = countersOf('login')
    this.#ofUsers = countersOf('user')
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
    const { key, isOfUser } = subject
    const { freeAttempts, lock, lockCount } = isOfUser ? this.#ofUsers : this.#ofAddresses
    const { window, initialDelay, maxDelay } = this.#limits
    if ((await freeAttempts.consume(key)).allowed) {
      // While attempts are free, the other counters are empty.
      return { cancel: () => freeAttempts.refund(key), succeed: () => freeAttempts.delete(key) }
    }
    const passed = await lockCount.used(key)
    const delay = Math.min(initialDelay * 2 ** passed, maxDelay)
    const { allowed, seconds } = await lock.consume(key, delay)
    if (!allowed) {
      // Windows end by the clock, which may have been set back.
      const left = Math.min(seconds, delay)
      this.#onThrottled(subject, left)
      throw new ServiceError('tooManyRequests', {
        headers: { 'retry-after': String(left) },
        sampledAs: 'login-attempts',
      })
    }
    // The window begins with this attempt, not with the first one: otherwise attempts became free again every few minutes.
    const countedFor = delay + window
    await Promise.all([
      lockCount.set(key, passed + 1, countedFor),
      freeAttempts.set(key, this.#limits.freeAttempts + 1, countedFor),
    ])
    return {
      // A client must not affect the delay of others by aborting an attempt that passed the lock.
      cancel: async () => undefined,
      succeed: () => Promise.all([freeAttempts, lock, lockCount].map(limit => limit.delete(key))),
    }
  }
}

/** For `RATE_LIMIT=off`. */
export const noLoginThrottle: LoginThrottle = { check: (_subject, verify) => verify() }
