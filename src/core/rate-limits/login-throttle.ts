/**
 * The limit on password attempts for one account. They are counted before hashing, so that a thousand parallel ones do not all pass; and
 * also without an account, so that a rejection does not reveal whether there is one.
 */

import { ServiceError } from '#base/errors'
import type { OpenRateLimit, RateLimit } from '#storage/rate-limit'
import { type Actor, actingUser, anonymous } from '../audit-log/event.ts'
import type { User } from '../users/user.ts'
import type { KnownNetworks } from './known-networks.ts'
import { digestKey, type LoginThrottleLimits } from './limits.ts'

export interface LoginSubject {
  readonly key: string
  /** `null` if strangers choose the key. */
  readonly userId: string | null
  /** There may be no such account. */
  readonly email: string
  readonly actor: Actor
}

export interface LoginThrottle {
  /**
   * @param verify returns `undefined` for a wrong password. If it throws, the attempt does not count.
   * @throws {ServiceError} `tooManyRequests` before `verify` is called; errors of `verify`
   */
  check<Result>(subject: LoginSubject, verify: () => Promise<Result | undefined>): Promise<Result | undefined>
}

/** A client that is not signed in to the account. */
export const emailSubject = (email: string, ip: string | null): LoginSubject => ({
  key: `email:${digestKey(email)}`,
  userId: null,
  email,
  actor: anonymous(ip),
})

/** The holder of a mailed token. Attempts elsewhere do not make them wait, and nobody else knows the key. @param digest of the token. */
export const tokenSubject = (digest: string, email: string, ip: string | null): LoginSubject => ({
  key: `token:${digest}`,
  userId: null,
  email,
  actor: anonymous(ip),
})

/** A signed-in user: others cannot throttle them, and a stolen session cannot try passwords without limit. */
export const userSubject = ({ id, email }: User, ip: string | null): LoginSubject => ({
  key: `user:${id}`,
  userId: id,
  email,
  actor: actingUser(id, ip),
})

/** Codes of a user, wherever they are sent: in all, nobody can try more than the limit. */
export const codeSubject = ({ id, email }: User, ip: string | null): LoginSubject => ({
  key: `code:${id}`,
  userId: id,
  email,
  actor: anonymous(ip),
})

interface Attempt {
  /** Does not count it. */
  cancel(): Promise<unknown>
  /** Clears all counters, after the correct password. */
  succeed(): Promise<unknown>
}

interface Waits {
  /** Allows one attempt, then none until the delay is over; atomic, so that parallel attempts cannot all pass. */
  readonly lock: RateLimit
  readonly lockCount: RateLimit
}

interface Counters extends Waits {
  /** Counts rejected attempts too: it only shows that no free attempt is left. */
  readonly freeAttempts: RateLimit
}

export class StoredLoginThrottle implements LoginThrottle {
  readonly #limits: LoginThrottleLimits
  readonly #ofAddresses: Counters
  /** Apart, because memory for counters is bounded: attempts on many addresses must not evict the count of a user's codes. */
  readonly #ofUsers: Counters
  /** The waits of one account in one network from which its user has signed in: strangers cannot make it wait. */
  readonly #ofKnownNetworks: Waits
  readonly #networks: Pick<KnownNetworks, 'find'>
  readonly #onThrottled: (subject: LoginSubject, seconds: number) => void

  /** @param onThrottled called for each rejected attempt, with the seconds to wait. */
  constructor(
    open: OpenRateLimit,
    limits: LoginThrottleLimits,
    networks: Pick<KnownNetworks, 'find'>,
    onThrottled: (subject: LoginSubject, seconds: number) => void,
  ) {
    const { freeAttempts, window, initialDelay, maxDelay } = limits
    const waitsOf = (name: string): Waits => ({
      lock: open({ name: `${name}-lock`, points: 1, seconds: initialDelay }),
      lockCount: open({ name: `${name}-lock-count`, points: 0, seconds: window + maxDelay }),
    })
    const countersOf = (name: string): Counters => ({
      freeAttempts: open({ name: `${name}-attempts`, points: freeAttempts, seconds: window }),
      ...waitsOf(name),
    })
    this.#limits = limits
    this.#networks = networks
    this.#onThrottled = onThrottled
    this.#ofAddresses = countersOf('login')
    this.#ofUsers = countersOf('user')
    this.#ofKnownNetworks = waitsOf('network')
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
    const { key, userId, email, actor } = subject
    const { freeAttempts, ...ofAll } = userId === null ? this.#ofAddresses : this.#ofUsers
    const free = await freeAttempts.consume(key)
    if (free.allowed) {
      // While attempts are free, at most known networks wait.
      return { cancel: () => freeAttempts.refund(key), succeed: () => freeAttempts.delete(key) }
    }
    // Only now, so that an ordinary sign-in does not pay for it.
    const network = await this.#networks.find(userId === null ? { email } : { userId }, actor.ip)
    const { lock, lockCount } = network === null ? ofAll : this.#ofKnownNetworks
    const waitKey = network === null ? key : `${key}:${network}`
    const { window, initialDelay, maxDelay } = this.#limits
    const passed = await lockCount.used(waitKey)
    const delay = Math.min(initialDelay * 2 ** passed, maxDelay)
    const { allowed, seconds } = await lock.consume(waitKey, delay)
    if (!allowed) {
      // Windows end by the clock, which may have been set back.
      const left = Math.min(seconds, delay)
      this.#onThrottled(subject, left)
      throw new ServiceError('tooManyRequests', {
        headers: { 'retry-after': String(left) },
        sampledAs: 'login-attempts',
      })
    }
    // The window begins with this attempt: otherwise attempts became free again every few minutes. It never ends before that of others.
    const countedFor = delay + window
    await Promise.all([
      lockCount.set(waitKey, passed + 1, countedFor),
      freeAttempts.set(key, this.#limits.freeAttempts + 1, Math.max(countedFor, free.seconds)),
    ])
    return {
      // A client must not affect the delay of others by aborting an attempt that passed the lock.
      cancel: async () => undefined,
      succeed: async () => {
        // What the owner does on a known network must not end the wait of strangers.
        const isFree = network === null || (await ofAll.lockCount.used(key)) === 0
        const ended = isFree ? [freeAttempts.delete(key)] : []
        await Promise.all([lock.delete(waitKey), lockCount.delete(waitKey), ...ended])
      },
    }
  }
}

export const noLoginThrottle: LoginThrottle = { check: (_subject, verify) => verify() }
