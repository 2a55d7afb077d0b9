/** What users do with their sessions, and administrators with a user's. */
import { ServiceError } from '../errors.ts'
import type { Session, SessionLimits, SessionStore } from './session.ts'

/** Sessions in a list: who has more is shown the newest. */
const LIST_LIMIT = 1_000

export interface SessionsParts {
  readonly store: SessionStore
  readonly limits: SessionLimits
  readonly clock: () => number
}

export class Sessions {
  readonly #parts: SessionsParts

  constructor(parts: SessionsParts) {
    this.#parts = parts
  }

  /** The sessions of a user that can still be used, newest first. */
  async list(userId: string): Promise<readonly Session[]> {
    const { store, limits, clock } = this.#parts
    const now = clock()
    return store.list(userId, now, now - limits.idle, LIST_LIMIT)
  }

  /** Ends a session of the user's own. @throws {ServiceError} `sessionNotFound`, also for another user's */
  async end(userId: string, id: string): Promise<void> {
    if (!(await this.#parts.store.end(userId, id))) throw new ServiceError('sessionNotFound')
  }

  /** Ends a user's sessions, but for one where `exceptId` is given. @throws {ServiceError} `userNotFound` */
  async endAll(userId: string, exceptId: string | null = null): Promise<void> {
    if (!(await this.#parts.store.endAll(userId, exceptId))) throw new ServiceError('userNotFound')
  }
}
