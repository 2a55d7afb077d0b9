/** Sign-in with a password. */

import { ServiceError } from '#base/errors'
import type { SessionClient } from '../auth/session.ts'
import { isAmbiguous, isWeak } from '../passwords/formats.ts'
import { emailSubject, type LoginThrottle, userSubject } from '../rate-limits/login-throttle.ts'
import type { User } from '../users/user.ts'
import type { AuthResult } from './auth-result.ts'
import type { AccountDeps } from './deps.ts'
import type { SignIns, VerifiedSignIn } from './sign-ins.ts'

export interface Credentials {
  /** In canonical form. */
  readonly email: string
  readonly password: string
  readonly code?: string
}

type Deps = AccountDeps & { readonly signIns: SignIns }

interface VerifiedPassword extends VerifiedSignIn {
  readonly passwordHash: string
}

export class PasswordSignIns {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** The error of a sign-in whose hash would be rejected, before its body is read; `null` if there is room. */
  refusal(): ServiceError | null {
    const { signIns, hasher } = this.#deps
    return signIns.countRefusal('password', hasher.refusal())
  }

  /**
   * Opens a session. An unknown e-mail, a wrong password, an account without a password and a disabled account cost the same hash.
   * @param signedInAs who sends the request, if anybody: their own attempts are throttled apart from those of others.
   * @throws {ServiceError} `wrongCredentials`, and the errors of {@link SignIns.complete}
   */
  async signIn(
    { email, password, code }: Credentials,
    client: SessionClient,
    signedInAs: User | null,
    signal?: AbortSignal,
  ): Promise<AuthResult> {
    const { signIns } = this.#deps
    const subject =
      signedInAs?.email === email ? userSubject(signedInAs, client.ip) : emailSubject(email, client.ip)
    let verified: VerifiedPassword | undefined
    const verify = async () => {
      verified = await this.#verify(email, password, subject, signal)
      return verified
    }
    const result = await signIns.complete('password', { client, code, verify })
    if (verified !== undefined) await this.#strengthen(verified, password)
    return result
  }

  async #verify(
    email: string,
    password: string,
    subject: Parameters<LoginThrottle['check']>[0],
    signal: AbortSignal | undefined,
  ): Promise<VerifiedPassword> {
    const { users, hasher, loginThrottle } = this.#deps
    const verified = await loginThrottle.check(subject, async () => {
      const found = await users.findByEmail(email)
      const passwordHash = found?.passwordHash ?? null
      const isRight = await hasher.verify(password, passwordHash, signal)
      return isRight && found !== undefined && passwordHash !== null
        ? { user: found.user, passwordHash }
        : undefined
    })
    if (verified === undefined) throw new ServiceError('wrongCredentials')
    return verified
  }

  /** Replaces a weak hash. While hashing is overloaded, this is left to the next sign-in. */
  async #strengthen({ user, passwordHash }: VerifiedPassword, password: string): Promise<void> {
    if (!isWeak(passwordHash) || isAmbiguous(password, passwordHash)) return
    const { accountStore, hasher } = this.#deps
    try {
      await accountStore.rehash(user.id, passwordHash, await hasher.hash(password))
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
    }
  }
}
