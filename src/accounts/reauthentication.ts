/** What needs more than a session: the user's password once again. */

import { type ErrorName, ServiceError } from '../errors.ts'
import type { PasswordHasher } from '../passwords/hasher.ts'
import { type LoginThrottle, userSubject } from '../rate-limits/login-throttle.ts'
import type { User } from '../users/user.ts'
import type { UserRefusal, UserStore } from '../users/user-store.ts'

export interface ReauthenticationDeps {
  readonly users: UserStore
  readonly hashing: PasswordHasher
  readonly loginThrottle: LoginThrottle
}

/** How often something is tried whose account changes each time in the meantime. */
const ATTEMPTS = 3

/** A password as a client sends it, to prove that it is the user's. */
export interface PresentedPassword {
  readonly password: string
  /** The error for a wrong password: it names the field in which the password was sent. */
  readonly wrong: ErrorName
  /** Where it comes from. */
  readonly ip: string | null
  readonly signal: AbortSignal | undefined
}

export class Reauthentication {
  readonly #parts: ReauthenticationDeps

  constructor(parts: ReauthenticationDeps) {
    this.#parts = parts
  }

  /**
   * Does what the right password alone allows. Where the store meets another hash, a sign-in has perhaps hashed the same
   * password anew: then it is compared and tried again.
   * @param act gets the hash that the password was compared with, for the store to compare it once more.
   * @throws {ServiceError} `wrong`; `signInRequired` when the user was disabled or removed meanwhile, or has another
   * password; `tooManyRequests`, `overloaded`, `clientGone`, `draining`, `storeUnavailable`; what `act` throws
   */
  async confirmed<Outcome>(
    user: User,
    presented: PresentedPassword,
    act: (verifiedHash: string) => Promise<Outcome | UserRefusal>,
  ): Promise<Exclude<Outcome, UserRefusal>> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const verifiedHash = await this.#verify(user, presented)
      // Another password ends every session, this one too.
      if (verifiedHash === undefined)
        throw new ServiceError(attempt === 1 ? presented.wrong : 'signInRequired')
      const outcome = await act(verifiedHash)
      if (outcome === 'userNotFound' || outcome === 'accountDisabled') break
      if (outcome !== 'passwordChanged') return outcome as Exclude<Outcome, UserRefusal>
    }
    throw new ServiceError('signInRequired')
  }

  /** @returns the hash of the user's password, `undefined` when the password is wrong. */
  async #verify(user: User, { password, ip, signal }: PresentedPassword): Promise<string | undefined> {
    const { hashing, loginThrottle } = this.#parts
    const passwordHash = await this.#passwordHash(user)
    return loginThrottle.check(userSubject(user, ip), async () =>
      (await hashing.verify(password, passwordHash, signal)) ? passwordHash : undefined,
    )
  }

  /** The user may have another e-mail by now, which ends no session. @throws {ServiceError} `signInRequired` */
  async #passwordHash({ id, email }: User): Promise<string> {
    const { users } = this.#parts
    let current = email
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const found = await users.findByEmail(current)
      if (found?.user.id === id) return found.passwordHash
      const user = await users.find(id)
      if (user === undefined) break
      current = user.email
    }
    throw new ServiceError('signInRequired')
  }
}
