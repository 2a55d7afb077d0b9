/** Re-authentication: operations that require the user's password, or a recent proof of identity, in addition to the session. */
import { actingUser, newEvent } from '../audit-log/event.ts'
import type { Principal, SessionOwner } from '../auth/principal.ts'
import { type ErrorName, ServiceError } from '../errors.ts'
import type { PasswordHasher } from '../passwords/hasher.ts'
import { type LoginThrottle, userSubject } from '../rate-limits/login-throttle.ts'
import type { SessionRefusal, SessionStore, UserStore, VerifiedSession } from '../storage/stores.ts'
import { needsCode } from '../users/factors.ts'
import type { User } from '../users/user.ts'
import { retryOnChange } from './retry.ts'
import type { SecondFactor } from './second-factor.ts'

export interface ReauthenticationDeps {
  readonly users: UserStore
  readonly sessions: Pick<SessionStore, 'noteAuthentication'>
  readonly hasher: Pick<PasswordHasher, 'verify'>
  readonly loginThrottle: LoginThrottle
  readonly secondFactor: SecondFactor
  readonly clock: () => number
}

/** Milliseconds for which a proof of identity is recent. */
const RECENT = 600_000

/** RFC 9470 §3. */
const CHALLENGE = `Bearer error="insufficient_user_authentication", max_age=${RECENT / 1_000}`

/** The client that sends a proof. */
interface ProofClient {
  /** The client's address. */
  readonly ip: string | null
  readonly signal: AbortSignal | undefined
}

/** What a user proves their identity with. */
export interface Proof extends ProofClient {
  readonly password: string | undefined
  /** Of an authenticator app, or a recovery code. A user with an app needs one, and then no password. */
  readonly code: string | undefined
}

/** A password from a request. */
export interface PresentedPassword extends ProofClient {
  readonly password: string
  /** The error for a wrong password: it names the field in which the password was sent. */
  readonly wrong: ErrorName
}

type SessionPrincipal = SessionOwner & Pick<Principal, 'authenticatedAt' | 'impersonatedBy'>

/** @throws {ServiceError} `impersonated` */
const assertOwnSession = ({ impersonatedBy }: SessionPrincipal): void => {
  if (impersonatedBy !== null) throw new ServiceError('impersonated')
}

export class Reauthentication {
  readonly #deps: ReauthenticationDeps

  constructor(deps: ReauthenticationDeps) {
    this.#deps = deps
  }

  /**
   * Runs an operation after the password was verified. If the hash changes meanwhile, the password is verified again: a
   * simultaneous sign-in may have replaced the hash by a stronger one of the same password.
   * @param act receives the session and the verified hash, which the store checks again in its transaction.
   * @throws {ServiceError} `wrong`; `signInRequired` when the user was disabled or deleted, changed the password, or ended the session
   * meanwhile; `tooManyRequests`, `overloaded`, `clientClosedRequest`, `draining`, `storeUnavailable`; errors of `act`
   */
  async withPassword<Outcome>(
    { cachedUser, credentialId }: SessionOwner,
    presented: PresentedPassword,
    act: (acting: VerifiedSession) => Promise<Outcome | SessionRefusal>,
  ): Promise<Exclude<Outcome, SessionRefusal>> {
    const done = await retryOnChange(async attempt => {
      const passwordHash = await this.#verify(cachedUser.user, presented)
      // A changed password has ended every session, this one too.
      if (passwordHash === undefined)
        throw new ServiceError(attempt === 1 ? presented.wrong : 'signInRequired')
      const outcome = await act({ id: credentialId, passwordHash })
      if (outcome === 'passwordChanged') return undefined
      if (outcome === 'userNotFound' || outcome === 'accountDisabled' || outcome === 'sessionNotFound')
        throw new ServiceError('signInRequired')
      return { outcome: outcome as Exclude<Outcome, SessionRefusal> }
    })
    if (done === undefined) throw new ServiceError('signInRequired')
    return done.outcome
  }

  /**
   * Requires a proof of identity in the request, or one within the last ten minutes (RFC 9470): at sign-in, or by {@link renew}. The
   * session may end meanwhile: operations check that it exists in their transaction.
   * @param proof `null` if the request has none.
   * @throws {ServiceError} `impersonated`, `reauthenticationRequired`; errors of {@link Reauthentication.#prove}
   */
  async require(principal: SessionPrincipal, proof: Proof | null): Promise<void> {
    assertOwnSession(principal)
    if (proof !== null) return this.#prove(principal.cachedUser.user, proof)
    if (this.#deps.clock() - principal.authenticatedAt > RECENT)
      throw new ServiceError('reauthenticationRequired', { headers: { 'www-authenticate': CHALLENGE } })
  }

  /**
   * Verifies a proof, and makes the session one that has authenticated now.
   * @throws {ServiceError} `impersonated`, `signInRequired`; errors of {@link Reauthentication.#prove}
   */
  async renew(principal: SessionPrincipal, proof: Proof): Promise<void> {
    const { sessions, clock } = this.#deps
    assertOwnSession(principal)
    const { id } = principal.cachedUser.user
    await this.#prove(principal.cachedUser.user, proof)
    const actor = actingUser(id, proof.ip)
    const event = newEvent('session.reauthenticated', actor, id, clock(), { session: principal.credentialId })
    const outcome = await sessions.noteAuthentication(principal.credentialId, event)
    if (outcome !== 'noted') throw new ServiceError('signInRequired')
  }

  /**
   * A user with an authenticator app needs a code: the password alone could otherwise add a passkey, which signs in without one.
   * @throws {ServiceError} `wrongPassword`, `wrongCode`, `passwordRequired`, `codeRequired`; `signInRequired` when the user was deleted
   * meanwhile; `codesUnavailable`, `tooManyRequests`, `overloaded`, `clientClosedRequest`, `draining`, `storeUnavailable`
   */
  async #prove(user: User, { password, code, ip, signal }: Proof): Promise<void> {
    if (password !== undefined && (await this.#verify(user, { password, ip, signal })) === undefined)
      throw new ServiceError('wrongPassword')
    if (code !== undefined) {
      if (!(await this.#deps.secondFactor.verify(user, code, ip))) throw new ServiceError('wrongCode')
    } else if (needsCode(user)) throw new ServiceError('codeRequired')
    else if (password === undefined) throw new ServiceError('passwordRequired')
  }

  /** @returns the hash of the user's password; `undefined` when the password is wrong. */
  async #verify(
    user: User,
    { password, ip, signal }: ProofClient & { readonly password: string },
  ): Promise<string | undefined> {
    const { hasher, loginThrottle } = this.#deps
    const passwordHash = await this.#passwordHash(user)
    return loginThrottle.check(userSubject(user, ip), async () =>
      (await hasher.verify(password, passwordHash, signal)) ? passwordHash : undefined,
    )
  }

  /** Finds the user also after a change of the e-mail, which ends no session. @throws {ServiceError} `signInRequired` */
  async #passwordHash({ id, email }: User): Promise<string> {
    const { users } = this.#deps
    let current = email
    const passwordHash = await retryOnChange(async () => {
      const found = await users.findByEmail(current)
      if (found?.user.id === id) return found.passwordHash
      const user = await users.find(id)
      if (user === undefined) throw new ServiceError('signInRequired')
      current = user.email
      return undefined
    })
    if (passwordHash === undefined) throw new ServiceError('signInRequired')
    return passwordHash
  }
}
