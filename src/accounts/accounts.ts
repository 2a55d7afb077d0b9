/** Sign-up and sign-in. */
import { actingUser, newEvent } from '../audit-log/event.ts'
import type { AccessTokens } from '../auth/access-tokens.ts'
import { newSession, type SessionClient, type SessionLimits } from '../auth/session.ts'
import type { SessionStore } from '../auth/session-store.ts'
import { KeyedMutex } from '../concurrency/keyed-mutex.ts'
import { ServiceError } from '../errors.ts'
import { isAmbiguous, isWeak } from '../passwords/formats.ts'
import type { PasswordHasher } from '../passwords/hasher.ts'
import { emailSubject, type LoginThrottle, userSubject } from '../rate-limits/login-throttle.ts'
import type { User } from '../users/user.ts'
import type { UserStore } from '../users/user-store.ts'
import { newUser } from './account-creation.ts'
import type { AccountStore } from './account-store.ts'
import { type SignedIn, signedIn } from './auth-result.ts'
import { newEmailToken } from './email-token.ts'
import type { Mails } from './mails.ts'
import { retryOnChange } from './retry.ts'

export interface SignUp extends Credentials {
  readonly firstName?: string | null
  readonly lastName?: string | null
}

export interface Credentials {
  /** In canonical form. */
  readonly email: string
  readonly password: string
}

export interface AccountsDeps {
  readonly users: UserStore
  readonly sessions: SessionStore
  readonly accountStore: AccountStore
  readonly tokens: AccessTokens
  readonly hasher: PasswordHasher
  readonly loginThrottle: LoginThrottle
  readonly limits: SessionLimits
  readonly mails: Mails
  /** Whether signing in requires a verified e-mail. */
  readonly requireEmailVerification: boolean
  readonly clock: () => number
}

export class Accounts {
  readonly #deps: AccountsDeps
  readonly #signUps = new KeyedMutex()

  constructor(deps: AccountsDeps) {
    this.#deps = deps
  }

  /**
   * Opens an account with a first session. Simultaneous sign-ups with one e-mail run one after the other, so that a thousand
   * of them cost one hash. Uniqueness does not depend on it: the store has a constraint.
   * @param signal aborted when the client disconnects. It cancels the sign-up until hashing starts.
   * @throws {ServiceError} `emailTaken`, `overloaded`, `clientGone`, `draining`, `storeUnavailable`
   */
  async signUp(input: SignUp, client: SessionClient, signal?: AbortSignal): Promise<SignedIn> {
    const { accountStore, tokens, hasher, mails, limits, clock } = this.#deps
    await this.#refuseTaken(input.email)
    return this.#signUps.runExclusive(input.email, async hasWaited => {
      if (hasWaited) await this.#refuseTaken(input.email)
      const passwordHash = await hasher.hash(input.password, signal)
      const now = clock()
      const user = newUser(input, now)
      const session = newSession(user.id, now, limits, client)
      const { token, stored } = newEmailToken('verification', user.id, user.email, now)
      const event = newEvent('user.signed-up', actingUser(user.id, client.ip), user.id, now)
      const first = { session, emailToken: stored }
      if (!(await accountStore.addUser({ ...user, passwordHash }, event, first)))
        throw new ServiceError('emailTaken')
      mails.send('verification', user.email, { token })
      return signedIn(tokens, user, session)
    })
  }

  /**
   * Opens a session. An unknown e-mail, a wrong password and a disabled account cost the same hash.
   * @param signedInAs the user who sends the request, if any: their own attempts are throttled apart from those of others.
   * @throws {ServiceError} `wrongCredentials`; `accountDisabled` and `emailNotVerified` only after the correct password;
   * `tooManyRequests`, `overloaded`, `clientGone`, `draining`, `storeUnavailable`
   */
  async signIn(
    credentials: Credentials,
    client: SessionClient,
    signedInAs: User | null,
    signal?: AbortSignal,
  ): Promise<SignedIn> {
    const result = await retryOnChange(() => this.#trySignIn(credentials, client, signedInAs, signal))
    if (result === undefined) throw new ServiceError('wrongCredentials')
    return result
  }

  /** @returns `undefined` when the account changed while the password was verified. */
  async #trySignIn(
    { email, password }: Credentials,
    client: SessionClient,
    signedInAs: User | null,
    signal: AbortSignal | undefined,
  ): Promise<SignedIn | undefined> {
    const { users, sessions, tokens, hasher, loginThrottle, limits, requireEmailVerification, clock } =
      this.#deps
    const subject =
      signedInAs?.email === email ? userSubject(signedInAs, client.ip) : emailSubject(email, client.ip)
    const found = await loginThrottle.check(subject, async () => {
      const account = await users.findByEmail(email)
      return (await hasher.verify(password, account?.passwordHash ?? null, signal)) ? account : undefined
    })
    if (found === undefined) throw new ServiceError('wrongCredentials')
    const { user, passwordHash } = found
    if (user.disabled) throw new ServiceError('accountDisabled')
    if (requireEmailVerification && !user.emailVerified) throw new ServiceError('emailNotVerified')
    const now = clock()
    const session = newSession(user.id, now, limits, client)
    const event = newEvent('user.signed-in', actingUser(user.id, client.ip), user.id, now, {
      session: session.id,
    })
    const outcome = await sessions.open(session, passwordHash, event)
    if (outcome === 'accountDisabled') throw new ServiceError('accountDisabled')
    // Possibly by a simultaneous sign-in that replaced the hash by a stronger one of the same password.
    if (outcome !== 'opened') return undefined
    if (isWeak(passwordHash) && !isAmbiguous(password, passwordHash))
      await this.#strengthen(user.id, passwordHash, password)
    return signedIn(tokens, user, session)
  }

  async #refuseTaken(email: string): Promise<void> {
    if ((await this.#deps.users.findByEmail(email)) !== undefined) throw new ServiceError('emailTaken')
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
