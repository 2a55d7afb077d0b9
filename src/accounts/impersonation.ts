/** Lets an administrator act as a user, for an hour, with an event in the audit log. */
import { type Actor, newEvent } from '../audit-log/event.ts'
import type { AccessTokens } from '../auth/access-tokens.ts'
import { newSession, type SessionClient, type SessionLimits } from '../auth/session.ts'
import type { SessionStore } from '../auth/session-store.ts'
import { ServiceError } from '../errors.ts'
import type { UserStore } from '../users/user-store.ts'
import { type AuthResult, authResult } from './auth-result.ts'

/** Milliseconds. */
const LIFETIME = 3_600_000

export interface ImpersonationDeps {
  readonly users: UserStore
  readonly sessions: SessionStore
  readonly tokens: AccessTokens
  readonly limits: SessionLimits
  readonly clock: () => number
}

export class Impersonation {
  readonly #deps: ImpersonationDeps

  constructor(deps: ImpersonationDeps) {
    this.#deps = deps
  }

  /**
   * @param endsBy when the session ends at the latest: the expiry of the admin key (milliseconds since the epoch).
   * @throws {ServiceError} `userNotFound`, `accountDisabled`
   */
  async begin(userId: string, actor: Actor, client: SessionClient, endsBy: number): Promise<AuthResult> {
    const { users, sessions, tokens, limits, clock } = this.#deps
    const user = await users.find(userId)
    if (user === undefined) throw new ServiceError('userNotFound')
    const now = clock()
    // A session ends with a whole second: with the last one before.
    const lifetime = Math.min(LIFETIME, Math.floor(endsBy / 1_000) * 1_000 - now)
    const session = {
      ...newSession(userId, now, { ...limits, lifetime }, client),
      impersonatedBy: actor.id,
    }
    const event = newEvent('user.impersonated', actor, userId, now, { session: session.id })
    const outcome = await sessions.open(session, null, event)
    if (outcome !== 'opened')
      throw new ServiceError(outcome === 'accountDisabled' ? 'accountDisabled' : 'userNotFound')
    return authResult(tokens, user, session)
  }
}
