/** Lets an administrator act as a user, for an hour, with an event in the audit log. */

import { ServiceError } from '#base/errors'
import { type Actor, newEvent } from '../audit-log/event.ts'
import { impersonatorOf, type PresentedAdminKey } from '../auth/admin-key.ts'
import { newSession, type SessionClient } from '../auth/session.ts'
import { type AuthResult, authResult } from './auth-result.ts'
import type { AccountDeps } from './deps.ts'
import { requireScopesOf } from './protected-role.ts'
import { IMPERSONATION } from './sign-in-methods.ts'

/** Milliseconds. */
const LIFETIME = 3_600_000

export class Impersonation {
  readonly #deps: AccountDeps

  constructor(deps: AccountDeps) {
    this.#deps = deps
  }

  /**
   * Opens a session that ends with the admin key, when it expires or is revoked; one of an administrator, with the role, the factors, the
   * account, and each session with two factors that the administrator ends.
   * @throws {ServiceError} `userNotFound`, `accountDisabled`, `scopeRequired`; `adminKeyRequired` if the key has been revoked meanwhile
   */
  async begin(
    userId: string,
    adminKey: PresentedAdminKey,
    actor: Actor,
    client: SessionClient,
  ): Promise<AuthResult> {
    const { users, sessions, tokens, limits, protectedRole, clock } = this.#deps
    const user = await users.find(userId)
    if (user === undefined) throw new ServiceError('userNotFound')
    requireScopesOf(protectedRole, user, adminKey)
    const now = clock()
    // A session ends with a whole second: with the last one before.
    const endsBy = adminKey.expiresAt ?? Number.POSITIVE_INFINITY
    const lifetime = Math.min(LIFETIME, Math.floor(endsBy / 1_000) * 1_000 - now)
    const session = {
      ...newSession(userId, now, { ...limits, lifetime }, IMPERSONATION, client),
      impersonatedBy: impersonatorOf(adminKey),
    }
    const event = newEvent('user.impersonated', actor, userId, now, { session: session.id })
    const outcome = await sessions.open(session, null, event)
    if (outcome !== 'opened')
      throw new ServiceError(outcome === 'accountDisabled' ? 'accountDisabled' : 'userNotFound')
    await this.#confirmKey(adminKey)
    return authResult(tokens, user, session)
  }

  /** After the session was opened: a simultaneous revocation may not have seen it. */
  async #confirmKey({ id, scopes, administrator }: PresentedAdminKey): Promise<void> {
    const { adminKeys, sessions } = this.#deps
    const isRevoked =
      administrator === undefined
        ? scopes !== null && (await adminKeys.endSessionsIfRevoked(id))
        : await sessions.endImpersonationsUnless(id, administrator)
    if (isRevoked) throw new ServiceError('adminKeyRequired')
  }
}
