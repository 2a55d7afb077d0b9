/**
 * Passwords that are tried on an account. Counted before the hash and not after it, so that a thousand at once are not all
 * let through; and whether there is such an account or not, so that being refused tells nothing about it.
 */
import { type Actor, anonymous } from '../audit-log/event.ts'
import { ServiceError } from '../errors.ts'
import type { User } from '../users/user.ts'
import { emailKey, type LoginThrottleLimits, type OpenRateLimit, type RateLimit } from './limits.ts'

/** Who tries a password, on which account. */
export interface LoginSubject {
  /** By what the attempts are counted. */
  readonly key: string
  /** Of the account, in canonical form; there may be none. */
  readonly email: string
  readonly actor: Actor
}

export interface LoginThrottle {
  /**
   * @param guesser {@link emailSubject} or {@link userSubject}.
   * @param guess what the right password leads to, `undefined` for a wrong one. What it throws was no guess.
   * @throws {ServiceError} `tooManyRequests` before `guess` is called, and whatever that throws.
   */
  check<Right>(subject: LoginSubject, guess: () => Promise<Right | undefined>): Promise<Right | undefined>
}

/** Somebody who is not signed in to the account. */
export const emailSubject = (email: string, ip: string | null): LoginSubject => ({
  key: `email:${emailKey(email)}`,
  email,
  actor: anonymous(ip),
})

/** Whoever is signed in: strangers cannot make a user wait, and a stolen session cannot try passwords without end. */
export const userSubject = ({ id, email }: User, ip: string | null): LoginSubject => ({
  key: `user:${id}`,
  email,
  actor: { type: 'user', id, ip },
})

/** An attempt that was let through, and counted. */
interface Attempt {
  /** It was none after all. */
  takeBack(): Promise<unknown>
  /** It was the right one: nothing before it counts any more. */
  forget(): Promise<unknown>
}

export class StoredLoginThrottle implements LoginThrottle {
  readonly #limits: LoginThrottleLimits
  /** Those that wait for nothing. Counts the refused ones too, so it says only that they are used up. */
  readonly #free: RateLimit
  /** Lets one through, then none until the wait is over; one operation of the store, so it is one of any number. */
  readonly #gate: RateLimit
  /** How many went through the gate. */
  readonly #waits: RateLimit

  readonly #onThrottled: (subject: LoginSubject, seconds: number) => void

  /** @param onThrottled told of each attempt that has to wait, and for how many seconds. */
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

  async check<Right>(
    subject: LoginSubject,
    guess: () => Promise<Right | undefined>,
  ): Promise<Right | undefined> {
    const attempt = await this.#admit(subject)
    let right: Right | undefined
    try {
      right = await guess()
    } catch (error) {
      await attempt.takeBack()
      throw error
    }
    if (right !== undefined) await attempt.forget()
    return right
  }

  async #admit(subject: LoginSubject): Promise<Attempt> {
    const { key } = subject
    const { free, memory, firstWait, longestWait } = this.#limits
    if ((await this.#free.consume(key)).allowed) {
      // While there are free ones, no wait is remembered.
      return { takeBack: () => this.#free.giveBack(key), forget: () => this.#free.delete(key) }
    }
    const waits = await this.#waits.used(key)
    const wait = Math.min(firstWait * 2 ** waits, longestWait)
    const { allowed, seconds } = await this.#gate.consume(key, wait)
    if (!allowed) {
      // Counts end by the clock, which may have been set back since.
      const left = Math.min(seconds, wait)
      this.#onThrottled(subject, left)
      throw new ServiceError('tooManyRequests', {
        headers: { 'retry-after': String(left) },
        sampledAs: 'password-guesses',
      })
    }
    // Remembered from here on, and not from the first one: else there were free ones again every few minutes.
    const remembered = wait + memory
    await Promise.all([
      this.#waits.set(key, waits + 1, remembered),
      this.#free.set(key, free + 1, remembered),
    ])
    return {
      // Whoever gives one up that the gate has let through could have the wait of all others begin anew.
      takeBack: async () => undefined,
      forget: () => Promise.all([this.#free, this.#gate, this.#waits].map(limit => limit.delete(key))),
    }
  }
}

/** For `RATE_LIMIT=off`. */
export const noLoginThrottle: LoginThrottle = { check: (_guesser, guess) => guess() }
