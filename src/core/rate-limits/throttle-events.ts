/** Events about throttled password attempts on an account. */

import type { DeferredWork } from '#base/concurrency/deferred-work'
import { Sampler } from '#base/concurrency/sampler'
import type { OpenRateLimit, RateLimit } from '#storage/rate-limit'
import { newEvent } from '../audit-log/event.ts'
import type { EventStore, UserStore } from '../store/store.ts'
import type { LoginSubject } from './login-throttle.ts'

/** Seconds in which an account gets at most one event. */
const INTERVAL = 60

export interface ThrottleEventsDeps {
  readonly users: UserStore
  readonly events: EventStore
  readonly openRateLimit: OpenRateLimit
  /** Used for nothing else: a flood of events must not displace other work. */
  readonly deferred: DeferredWork
  readonly clock: () => number
}

export interface ThrottleStatistics {
  readonly attempts: number
  /** Throttled accounts, each at most once a minute. */
  readonly accounts: number
}

export class ThrottleEvents {
  readonly #deps: ThrottleEventsDeps
  /** First, in memory: a flood of attempts costs no access to the store. */
  readonly #samples: Sampler
  /** Shared by all instances, after `#samples`: one of them records a wait. */
  readonly #waits: RateLimit
  #attempts = 0
  #accounts = 0

  constructor(deps: ThrottleEventsDeps) {
    this.#deps = deps
    this.#samples = new Sampler(deps.clock)
    this.#waits = deps.openRateLimit({ name: 'throttle-events', points: 1, seconds: INTERVAL })
  }

  get statistics(): ThrottleStatistics {
    return { attempts: this.#attempts, accounts: this.#accounts }
  }

  /**
   * Records `session.sign-in-throttled` if there is such an account, once for each wait and at most once a minute. Deferred, so that response
   * times do not reveal whether there is one. @param seconds until the next attempt is allowed.
   */
  record(subject: LoginSubject, seconds: number): void {
    this.#attempts += 1
    if (this.#samples.take('throttled', subject.key) === null) return
    this.#accounts += 1
    this.#deps.deferred.run(() => this.#record(subject, seconds))
  }

  async #record({ key, email, actor }: LoginSubject, seconds: number): Promise<void> {
    const { users, events, clock } = this.#deps
    const found = await users.findByEmail(email)
    if (found === undefined) return
    if (!(await this.#waits.consume(key, Math.max(INTERVAL, seconds))).allowed) return
    try {
      await events.record(newEvent('session.sign-in-throttled', actor, found.user.id, clock()))
    } catch (error) {
      await this.#waits.delete(key)
      throw error
    }
  }
}
