/** Re-authentication: a recent proof of identity in addition to the session. */

import { ServiceError } from '#base/errors'
import { actingUser, newEvent } from '../audit-log/event.ts'
import { actingSession, type Principal, type SessionOwner } from '../auth/principal.ts'
import { userSubject } from '../rate-limits/login-throttle.ts'
import { needsCode } from '../users/factors.ts'
import type { User } from '../users/user.ts'
import type { AccountDeps } from './deps.ts'
import { retryOnChange } from './retry.ts'

/** Milliseconds for which a proof of identity is recent. */
const RECENT = 600_000

/** RFC 9470 §3. */
const CHALLENGE = `Bearer error="insufficient_user_authentication", max_age=${RECENT / 1_000}`

export interface Proof {
  readonly ip: string | null
  readonly signal: AbortSignal | undefined
  readonly password: string | undefined
  /** The code of an authenticator app, or a recovery code. A user with an app needs one, and then no password. */
  readonly code: string | undefined
}

type SessionPrincipal = SessionOwner & Pick<Principal, 'impersonatedBy'>

const assertOwnSession = ({ impersonatedBy }: SessionPrincipal): void => {
  if (impersonatedBy !== null) throw new ServiceError('impersonated')
}

export const proofRequired = () =>
  new ServiceError('reauthenticationRequired', { headers: { 'www-authenticate': CHALLENGE } })

export class Reauthentication {
  readonly #deps: AccountDeps

  constructor(deps: AccountDeps) {
    this.#deps = deps
  }

  /**
   * Requires a proof of identity in the request, or within the last ten minutes (RFC 9470): at sign-in, or by {@link renew}. Operations check
   * in their transaction that the session still exists. @param proof `null` if the request has none.
   * @throws {ServiceError} `impersonated`, `reauthenticationRequired`; errors of {@link Reauthentication.#prove}
   */
  async require(principal: SessionPrincipal, proof: Proof | null): Promise<void> {
    assertOwnSession(principal)
    const isRecent = this.isRecent(principal)
    if (proof !== null) return this.#prove(principal.cachedUser.user, proof, isRecent)
    if (!isRecent) throw proofRequired()
  }

  /** Whether a session has a proof of identity within the last ten minutes. */
  isRecent({ authenticatedAt }: Pick<SessionOwner, 'authenticatedAt'>): boolean {
    return this.#deps.clock() - authenticatedAt <= RECENT
  }

  /**
   * Verifies a proof, sets the session's time of authentication to now, and adds the proof to its `amr`.
   * @throws {ServiceError} `impersonated`, `signInRequired`; errors of {@link Reauthentication.#prove}
   */
  async renew(principal: SessionPrincipal, proof: Proof): Promise<void> {
    const { sessions, clock } = this.#deps
    assertOwnSession(principal)
    const { id } = principal.cachedUser.user
    await this.#prove(principal.cachedUser.user, proof, false)
    const actor = actingUser(id, proof.ip)
    const event = newEvent('session.reauthenticated', actor, id, clock(), { session: principal.credentialId })
    const proved = { password: proof.password !== undefined, code: proof.code !== undefined }
    // A former proof of the session may end meanwhile.
    const session = { ...actingSession(principal), authenticatedAt: 0 }
    const outcome = await sessions.recordAuthentication(session, proved, event)
    if (outcome !== 'recorded') throw new ServiceError('signInRequired')
  }

  /**
   * A user with an authenticator app needs a code: the password alone could otherwise add a passkey, which signs in without one.
   * @param isRecent whether the session has a recent proof, so that none is missing.
   * @throws {ServiceError} `wrongPassword`, `wrongCode`, `passwordRequired`, `codeRequired`; `reauthenticationRequired` for a user who has
   * neither and signs in again; `signInRequired` when the user was deleted meanwhile; `codesUnavailable`, `tooManyRequests`
   */
  async #prove(user: User, { password, code, ip, signal }: Proof, isRecent: boolean): Promise<void> {
    if (password !== undefined && (await this.verifyPassword(user, password, ip, signal)) === undefined)
      throw new ServiceError('wrongPassword')
    if (code !== undefined) {
      if (!(await this.#deps.secondFactor.verify(user, code, ip))) throw new ServiceError('wrongCode')
    } else if (isRecent) return
    else if (needsCode(user)) throw new ServiceError('codeRequired')
    else if (password === undefined)
      throw user.hasPassword ? new ServiceError('passwordRequired') : proofRequired()
  }

  /**
   * @returns the hash of the password; `undefined` when it is wrong, or there is none.
   * @throws {ServiceError} `signInRequired` when the user was deleted; `tooManyRequests`
   */
  async verifyPassword(
    user: User,
    password: string,
    ip: string | null,
    signal: AbortSignal | undefined,
  ): Promise<string | undefined> {
    const { hasher, loginThrottle } = this.#deps
    const passwordHash = await this.#passwordHash(user)
    return loginThrottle.check(userSubject(user, ip), async () =>
      (await hasher.verify(password, passwordHash, signal)) ? (passwordHash ?? undefined) : undefined,
    )
  }

  /** Finds the user also after a change of the e-mail, which ends no session. @throws {ServiceError} `signInRequired` */
  async #passwordHash({ id, email }: User): Promise<string | null> {
    const { users } = this.#deps
    let current = email
    const found = await retryOnChange(async () => {
      const found = await users.findByEmail(current)
      if (found?.user.id === id) return found
      const user = await users.find(id)
      if (user === undefined) throw new ServiceError('signInRequired')
      current = user.email
      return undefined
    })
    if (found === undefined) throw new ServiceError('signInRequired')
    return found.passwordHash
  }
}
