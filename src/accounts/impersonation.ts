/** Acting as a user, for an administrator who has to see what they see: for an hour, and on record. */

import { type Actor, newEvent } from '../audit-log/event.ts'
import { newSession, type SessionClient } from '../auth/session.ts'
import { ServiceError } from '../errors.ts'
import type { AccountsDeps } from './accounts.ts'
import { type SignedIn, signedIn } from './auth-result.ts'

/** Milliseconds. */
const LIFETIME = 3_600_000

export class Impersonation {
  readonly #parts: AccountsDeps

  constructor(parts: AccountsDeps) {
    this.#parts = parts
  }

  /** @throws {ServiceError} `userNotFound`, `accountDisabled` */
  async begin(userId: string, actor: Actor, client: SessionClient): Promise<SignedIn> {
    const { users, sessions, tokens, userCache, limits, clock } = this.#parts
    const user = await users.find(userId)
    if (user === undefined) throw new ServiceError('userNotFound')
    const now = clock()
    const session = {
      ...newSession(userId, now, { ...limits, lifetime: LIFETIME }, client),
      impersonatedBy: actor.id,
    }
    const event = newEvent('user.impersonated', actor, userId, now, { session: session.id })
    const outcome = await sessions.open(session, null, event)
    if (outcome !== 'opened')
      throw new ServiceError(outcome === 'accountDisabled' ? 'accountDisabled' : 'userNotFound')
    return signedIn(tokens, userCache.withLatest(user), session)
  }
}
