/** Acting as a user, for an administrator who has to see what they see: for an hour, and on record. */

import { newSession, type SessionClient } from '../auth/session.ts'
import { ServiceError } from '../errors.ts'
import { type Actor, newEvent } from '../users/event.ts'
import type { AccountsParts } from './accounts.ts'
import { type SignedIn, signedIn } from './signed-in.ts'

/** Milliseconds. */
const LIFETIME = 3_600_000

export class Impersonation {
  readonly #parts: AccountsParts

  constructor(parts: AccountsParts) {
    this.#parts = parts
  }

  /** @throws {ServiceError} `userNotFound`, `accountDisabled` */
  async begin(userId: string, actor: Actor, client: SessionClient): Promise<SignedIn> {
    const { users, sessions, tokens, knownUsers, limits, clock } = this.#parts
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
    return signedIn(tokens, knownUsers.withLatest(user), session)
  }
}
