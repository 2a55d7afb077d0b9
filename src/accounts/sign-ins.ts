/** Sign-in. */
import type { AccessTokens } from '../auth/access-tokens.ts'
import type { SessionClient, SessionLimits } from '../auth/session.ts'
import { ServiceError } from '../errors.ts'
import { isAmbiguous, isWeak } from '../passwords/formats.ts'
import type { PasswordHasher } from '../passwords/hasher.ts'
import { emailSubject, type LoginThrottle, userSubject } from '../rate-limits/login-throttle.ts'
import type { AccountStore, SessionStore, UserStore } from '../storage/stores.ts'
import type { User } from '../users/user.ts'
import { type AuthResult, authResult } from './auth-result.ts'
import { assertMaySignIn, newSignIn, type SignInRules } from './new-sign-in.ts'
import { Outcomes } from './outcomes.ts'
import { retryOnChange } from './retry.ts'
import { PresentedCode, type SecondFactor } from './second-factor.ts'

export interface Credentials {
  /** In canonical form. */
  readonly email: string
  readonly password: string
  /** For users with a second factor. */
  readonly code?: string
}

export interface SignInsDeps extends SignInRules {
  readonly users: UserStore
  readonly sessions: SessionStore
  readonly accountStore: AccountStore
  readonly tokens: AccessTokens
  readonly hasher: PasswordHasher
  readonly loginThrottle: LoginThrottle
  readonly secondFactor: SecondFactor
  readonly limits: SessionLimits
  readonly clock: () => number
}

export class SignIns {
  readonly #deps: SignInsDeps
  readonly outcomes = new Outcomes(
    'wrong_credentials',
    'code_required',
    'wrong_code',
    'account_disabled',
    'email_not_verified',
    'throttled',
    'overloaded',
    'cancelled',
  )

  constructor(deps: SignInsDeps) {
    this.#deps = deps
  }

  /** For a sign-in whose body has not been read. @returns the error that it gets if its hash would be rejected; `null` if not. */
  refusal(): ServiceError | null {
    return this.outcomes.countRefusal(this.#deps.hasher.refusal())
  }

  /**
   * Opens a session. An unknown e-mail, a wrong password and a disabled account cost the same hash.
   * @param signedInAs the user who sends the request, if any: their own attempts are throttled apart from those of others.
   * @throws {ServiceError} `wrongCredentials`; `accountDisabled`, `emailNotVerified`, `secondFactorRequired` and `wrongSecondFactor`
   * only after the correct password; `codesUnavailable`, `tooManyRequests`, `overloaded`, `clientClosedRequest`, `draining`,
   * `storeUnavailable`
   */
  signIn(
    credentials: Credentials,
    client: SessionClient,
    signedInAs: User | null,
    signal?: AbortSignal,
  ): Promise<AuthResult> {
    return this.outcomes.count(async () => {
      const code = new PresentedCode(this.#deps.secondFactor, credentials.code, client.ip)
      const attempt = () => this.#trySignIn(credentials, code, client, signedInAs, signal)
      const result = await retryOnChange(attempt)
      if (result === undefined) throw new ServiceError('wrongCredentials')
      return result
    })
  }

  /** @returns `undefined` when the account changed while the password was verified. */
  async #trySignIn(
    { email, password }: Credentials,
    code: PresentedCode,
    client: SessionClient,
    signedInAs: User | null,
    signal: AbortSignal | undefined,
  ): Promise<AuthResult | undefined> {
    const { users, sessions, tokens, hasher, loginThrottle, limits, clock } = this.#deps
    const subject =
      signedInAs?.email === email ? userSubject(signedInAs, client.ip) : emailSubject(email, client.ip)
    const found = await loginThrottle.check(subject, async () => {
      const account = await users.findByEmail(email)
      return (await hasher.verify(password, account?.passwordHash ?? null, signal)) ? account : undefined
    })
    if (found === undefined) throw new ServiceError('wrongCredentials')
    const { user, passwordHash } = found
    assertMaySignIn(user, this.#deps)
    await code.require(user)
    const { session, event } = newSignIn(user.id, clock(), limits, client)
    const outcome = await sessions.open(session, { passwordHash, factors: user.factors }, event)
    if (outcome === 'accountDisabled') throw new ServiceError('accountDisabled')
    // Possibly by a simultaneous sign-in that replaced the hash by a stronger one of the same password.
    if (outcome !== 'opened') return undefined
    if (isWeak(passwordHash) && !isAmbiguous(password, passwordHash))
      await this.#strengthen(user.id, passwordHash, password)
    return authResult(tokens, user, session)
  }

  /** Replaces a weak hash. While hashing is overloaded, this is left to the next sign-in. */
  async #strengthen(userId: string, weakHash: string, password: string): Promise<void> {
    const { accountStore, hasher } = this.#deps
    try {
      await accountStore.rehash(userId, weakHash, await hasher.hash(password))
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
    }
  }
}
