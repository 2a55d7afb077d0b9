/** Sign-up and sign-in: the two ways to a session. */
import { v7 as uuidv7 } from 'uuid'
import { ServiceError } from '../errors.ts'
import type { User } from '../users/user.ts'
import type { UserStore } from '../users/user-store.ts'
import type { AccessTokens } from './access-tokens.ts'
import { isWeak } from './hash-parameters.ts'
import type { Hashing } from './hashing.ts'
import { KeyedMutex } from './keyed-mutex.ts'
import type { KnownUsers } from './known-users.ts'
import {
  newSession,
  type Session,
  type SessionClient,
  type SessionLimits,
  type SessionStore,
} from './session.ts'

export interface SignUp extends Credentials {
  readonly firstName?: string | null
  readonly lastName?: string | null
}

export interface Credentials {
  /** In canonical form. */
  readonly email: string
  readonly password: string
}

export interface SignedIn {
  readonly accessToken: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
  readonly user: User
}

/** What a session is handed out as. */
export const signedIn = (tokens: AccessTokens, user: User, session: Session): SignedIn => ({
  accessToken: tokens.issue(session),
  expiresAt: session.expiresAt,
  user,
})

export interface AccountsParts {
  readonly users: UserStore
  readonly sessions: SessionStore
  readonly tokens: AccessTokens
  readonly hashing: Hashing
  readonly knownUsers: KnownUsers
  readonly limits: SessionLimits
  readonly clock: () => number
}

/** How often a sign-in is tried whose account changes each time while the hash is computed. */
const ATTEMPTS = 3

export class Accounts {
  readonly #parts: AccountsParts
  readonly #signUps = new KeyedMutex()

  constructor(parts: AccountsParts) {
    this.#parts = parts
  }

  /**
   * Opens an account with a first session. Simultaneous sign-ups of one e-mail wait for each other, so that a thousand of
   * them cost one hash; that one alone wins is the store's constraint, not this.
   * @param signal aborted when the client has gone; before the hash has begun, nothing comes of the sign-up then.
   * @throws {ServiceError} `emailTaken`, `overloaded`, `clientGone`, `draining`, `storeUnavailable`
   */
  async signUp(input: SignUp, client: SessionClient, signal?: AbortSignal): Promise<SignedIn> {
    const { sessions, tokens, hashing, limits, clock } = this.#parts
    await this.#refuseTaken(input.email)
    return this.#signUps.runExclusive(input.email, async waited => {
      if (waited) await this.#refuseTaken(input.email)
      const passwordHash = await hashing.hash(input.password, signal)
      const now = clock()
      const user = {
        id: uuidv7(),
        email: input.email,
        firstName: input.firstName ?? null,
        lastName: input.lastName ?? null,
        emailVerified: false,
        disabled: false,
        createdAt: now,
        updatedAt: now,
      }
      const session = newSession(user.id, now, limits, client)
      if (!(await sessions.addUser({ ...user, passwordHash }, session))) throw new ServiceError('emailTaken')
      return signedIn(tokens, { ...user, lastRequestAt: null }, session)
    })
  }

  /**
   * Opens a session for the right pair. An unknown e-mail, a wrong password and a disabled account cost the same hash.
   * @throws {ServiceError} `wrongCredentials`; `accountDisabled` after the right password alone; `overloaded`,
   * `clientGone`, `draining`, `storeUnavailable`
   */
  async signIn(
    { email, password }: Credentials,
    client: SessionClient,
    signal?: AbortSignal,
    attempt = 1,
  ): Promise<SignedIn> {
    const { users, sessions, tokens, hashing, knownUsers, limits, clock } = this.#parts
    const found = await users.findByEmail(email)
    const matches = await hashing.verify(password, found?.passwordHash ?? null, signal)
    if (found === undefined || !matches) throw new ServiceError('wrongCredentials')
    const { user, passwordHash } = found
    if (user.disabled) throw new ServiceError('accountDisabled')
    const session = newSession(user.id, clock(), limits, client)
    // The account may have changed while the hash was computed: the store decides.
    if (!(await sessions.open(session, passwordHash))) {
      // Perhaps by a sign-in beside this one, which has hashed the same password anew.
      if (attempt < ATTEMPTS) return this.signIn({ email, password }, client, signal, attempt + 1)
      throw new ServiceError('wrongCredentials')
    }
    if (isWeak(passwordHash)) await this.#strengthen(user.id, passwordHash, password)
    return signedIn(
      tokens,
      { ...user, lastRequestAt: knownUsers.latest(user.id, user.lastRequestAt) },
      session,
    )
  }

  async #refuseTaken(email: string): Promise<void> {
    if ((await this.#parts.users.findByEmail(email)) !== undefined) throw new ServiceError('emailTaken')
  }

  /** Hashes the password with today's parameters. Where there is no room for it now, the next sign-in tries again. */
  async #strengthen(userId: string, weakHash: string, password: string): Promise<void> {
    const { sessions, hashing } = this.#parts
    try {
      await sessions.rehash(userId, weakHash, await hashing.hash(password))
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
    }
  }
}
