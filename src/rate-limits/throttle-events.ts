/** The audit log's word that somebody tries passwords on an account and has to wait. */

import type { EventStore } from '../audit-log/audit-log.ts'
import { newEvent } from '../audit-log/event.ts'
import type { DeferredWork } from '../concurrency/deferred-work.ts'
import { Sampler } from '../concurrency/sampler.ts'
import type { UserStore } from '../users/user-store.ts'
import type { OpenRateLimit, RateLimit } from './limits.ts'
import type { LoginSubject } from './login-throttle.ts'

/** Seconds in which an account has one event at most, however many waits begin. */
const INTERVAL = 60

export interface ThrottleEventsDeps {
  readonly users: UserStore
  readonly events: EventStore
  readonly openRateLimit: OpenRateLimit
  /** Of its own: a flood must not keep other work from being done. */
  readonly later: DeferredWork
  readonly clock: () => number
}

export class ThrottleEvents {
  readonly #parts: ThrottleEventsDeps
  readonly #samples: Sampler
  /** Shared by all instances: one of them records a wait. */
  readonly #waits: RateLimit

  constructor(parts: ThrottleEventsDeps) {
    this.#parts = parts
    this.#samples = new Sampler(parts.clock)
    this.#waits = parts.openRateLimit({ name: 'throttle-events', points: 1, seconds: INTERVAL })
  }

  /**
   * Records `session.sign-in-throttled` if there is such an account, once for each wait and once a minute at most. All of it
   * happens later, so that neither the answer nor its time tells whether there is one.
   * @param seconds until the next attempt is let through.
   */
  note(subject: LoginSubject, seconds: number): void {
    if (this.#samples.take('throttled', subject.key) === null) return
    this.#parts.later.run(() => this.#record(subject, seconds))
  }

  async #record({ key, email, actor }: LoginSubject, seconds: number): Promise<void> {
    const { users, events, clock } = this.#parts
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
