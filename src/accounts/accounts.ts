/** Sign-up and sign-in: the two ways to a session. */
import { newEvent } from '../audit-log/event.ts'
import type { AccessTokens } from '../auth/access-tokens.ts'
import { newSession, type SessionClient, type SessionLimits } from '../auth/session.ts'
import type { SessionStore } from '../auth/session-store.ts'
import type { UserCache } from '../auth/user-cache.ts'
import { KeyedMutex } from '../concurrency/keyed-mutex.ts'
import { ServiceError } from '../errors.ts'
import { isAmbiguous, isWeak } from '../passwords/formats.ts'
import type { PasswordHasher } from '../passwords/hasher.ts'
import { emailSubject, type LoginThrottle, userSubject } from '../rate-limits/login-throttle.ts'
import type { User } from '../users/user.ts'
import type { UserStore } from '../users/user-store.ts'
import { type NewAccountsDeps, newUser } from './account-creation.ts'
import type { AccountStore } from './account-store.ts'
import { type SignedIn, signedIn } from './auth-result.ts'
import { newEmailToken } from './email-token.ts'
import type { ExistingAccountNotice } from './existing-account-notice.ts'
import type { Mails } from './mails.ts'

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
  readonly hashing: PasswordHasher
  readonly loginThrottle: LoginThrottle
  readonly userCache: UserCache
  readonly limits: SessionLimits
  readonly mails: Mails
  /** Whether nobody signs in whose e-mail is not verified. */
  readonly requireEmailVerification: boolean
  readonly clock: () => number
}

/** How often a sign-in is tried whose account changes each time while the hash is computed. */
const ATTEMPTS = 3

export class Accounts {
  readonly #parts: AccountsDeps
  readonly #signUps = new KeyedMutex()

  constructor(parts: AccountsDeps) {
    this.#parts = parts
  }

  /**
   * Opens an account with a first session. Simultaneous sign-ups of one e-mail wait for each other, so that a thousand of
   * them cost one hash; that one alone wins is the store's constraint, not this.
   * @param signal aborted when the client has gone; before the hash has begun, nothing comes of the sign-up then.
   * @throws {ServiceError} `emailTaken`, `overloaded`, `clientGone`, `draining`, `storeUnavailable`
   */
  async signUp(input: SignUp, client: SessionClient, signal?: AbortSignal): Promise<SignedIn> {
    const { accountStore, tokens, hashing, mails, limits, clock } = this.#parts
    await this.#refuseTaken(input.email)
    return this.#signUps.runExclusive(input.email, async waited => {
      if (waited) await this.#refuseTaken(input.email)
      const passwordHash = await hashing.hash(input.password, signal)
      const now = clock()
      const user = newUser(input, now)
      const session = newSession(user.id, now, limits, client)
      const { token, stored } = newEmailToken('verification', user.id, user.email, now)
      const event = newEvent('user.signed-up', { type: 'user', id: user.id, ip: client.ip }, user.id, now)
      const first = { session, emailToken: stored }
      if (!(await accountStore.addUser({ ...user, passwordHash }, event, first)))
        throw new ServiceError('emailTaken')
      mails.send('verification', user.email, { token })
      return signedIn(tokens, user, session)
    })
  }

  /**
   * Opens a session for the right pair. An unknown e-mail, a wrong password and a disabled account cost the same hash.
   * @param signedInAs who makes the request, if anybody: strangers who try passwords do not make the user wait.
   * @throws {ServiceError} `wrongCredentials`; `accountDisabled`, `emailNotVerified` after the right password alone;
   * `tooManyRequests`, `overloaded`, `clientGone`, `draining`, `storeUnavailable`
   */
  async signIn(
    { email, password }: Credentials,
    client: SessionClient,
    signedInAs: User | null,
    signal?: AbortSignal,
    attempt = 1,
  ): Promise<SignedIn> {
    const {
      users,
      sessions,
      tokens,
      hashing,
      loginThrottle,
      userCache,
      limits,
      requireEmailVerification,
      clock,
    } = this.#parts
    const subject =
      signedInAs?.email === email ? userSubject(signedInAs, client.ip) : emailSubject(email, client.ip)
    const found = await loginThrottle.check(subject, async () => {
      const account = await users.findByEmail(email)
      // Before the hash: a flush in the meantime leaves the timestamp to the store, which was read before it.
      const current = account && { ...account, user: userCache.withLatest(account.user) }
      return (await hashing.verify(password, account?.passwordHash ?? null, signal)) ? current : undefined
    })
    if (found === undefined) throw new ServiceError('wrongCredentials')
    const { user, passwordHash } = found
    if (user.disabled) throw new ServiceError('accountDisabled')
    if (requireEmailVerification && !user.emailVerified) throw new ServiceError('emailNotVerified')
    const now = clock()
    const session = newSession(user.id, now, limits, client)
    const actor = { type: 'user', id: user.id, ip: client.ip } as const
    const event = newEvent('user.signed-in', actor, user.id, now, { session: session.id })
    // The account may have changed while the hash was computed: the store decides.
    const outcome = await sessions.open(session, passwordHash, event)
    if (outcome === 'accountDisabled') throw new ServiceError('accountDisabled')
    if (outcome !== 'opened') {
      // Perhaps by a sign-in beside this one, which has hashed the same password anew.
      if (attempt < ATTEMPTS) return this.signIn({ email, password }, client, signedInAs, signal, attempt + 1)
      throw new ServiceError('wrongCredentials')
    }
    if (isWeak(passwordHash) && !isAmbiguous(password, passwordHash))
      await this.#strengthen(user.id, passwordHash, password)
    return signedIn(tokens, userCache.withLatest(user), session)
  }

  async #refuseTaken(email: string): Promise<void> {
    if ((await this.#parts.users.findByEmail(email)) !== undefined) throw new ServiceError('emailTaken')
  }

  /** Hashes the password with today's parameters. Where there is no room for it now, the next sign-in tries again. */
  async #strengthen(userId: string, weakHash: string, password: string): Promise<void> {
    const { accountStore, hashing } = this.#parts
    try {
      await accountStore.rehash(userId, weakHash, await hashing.hash(password))
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
    }
  }
}

/** Sign-ups whose e-mail has to be verified before a session is opened. */

export interface VerifiedSignUpsDeps extends NewAccountsDeps {
  readonly mails: Mails
  readonly existingAccountNotice: ExistingAccountNotice
}

/** How often a sign-up is tried whose e-mail is taken, and free again the next timestamp. */
const SIGN_UP_ATTEMPTS = 3

export class VerifiedSignUps {
  readonly #parts: VerifiedSignUpsDeps

  constructor(parts: VerifiedSignUpsDeps) {
    this.#parts = parts
  }

  /**
   * A sign-up whose answer does not tell whether the e-mail has an account already: it costs the same hash and the same
   * write, and what there is to say is in the mail.
   * @throws {ServiceError} `overloaded`, `clientGone`, `draining`, `storeUnavailable`
   */
  async register(input: SignUp, ip: string | null, signal?: AbortSignal): Promise<void> {
    const { hashing, existingAccountNotice } = this.#parts
    const passwordHash = await hashing.hash(input.password, signal)
    for (let attempt = 1; attempt <= SIGN_UP_ATTEMPTS; attempt += 1) {
      if (await this.#add(input, passwordHash, ip)) return
      if (await existingAccountNotice.send(input.email, ip)) return
      // Its holder has closed the account between the two.
    }
    throw new ServiceError('overloaded')
  }

  /** @returns false when the e-mail is taken. */
  async #add(input: SignUp, passwordHash: string, ip: string | null): Promise<boolean> {
    const { accountStore, mails, clock } = this.#parts
    const now = clock()
    const user = newUser(input, now)
    const { token, stored } = newEmailToken('verification', user.id, input.email, now)
    const event = newEvent('user.signed-up', { type: 'user', id: user.id, ip }, user.id, now)
    const added = await accountStore.addUser({ ...user, passwordHash }, event, { emailToken: stored })
    if (added) mails.send('verification', input.email, { token })
    return added
  }
}
