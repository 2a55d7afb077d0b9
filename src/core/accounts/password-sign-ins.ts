/** Sign-in with a password. */

import { ServiceError } from '#base/errors'
import type { SessionClient } from '../auth/session.ts'
import { isAmbiguous } from '../passwords/formats.ts'
import { isWeak } from '../passwords/our-hash.ts'
import { emailSubject, type LoginThrottle, userSubject } from '../rate-limits/login-throttle.ts'
import type { User } from '../users/user.ts'
import type { AuthResult } from './auth-result.ts'
import type { AccountDeps } from './deps.ts'
import { isOver, isStepOf, newStep } from './sign-in-steps.ts'
import type { SignIns, VerifiedSignIn } from './sign-ins.ts'

export interface Credentials {
  /** In canonical form. */
  readonly email: string
  readonly password: string
  readonly code?: string
}

export interface SecondStep {
  /** In canonical form. */
  readonly email: string
  /** The value of {@link STEP_HEADER}. */
  readonly step: string
  readonly code: string
}

/** The header of a `secondFactorRequired`, for the hosted page that asks for the code. */
export const STEP_HEADER = 'sign-in-step'

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
    const isFirstStep = (error: unknown) =>
      error instanceof ServiceError && error.code === 'secondFactorRequired'
    try {
      const result = await signIns.complete('password', { client, code, verify })
      if (verified !== undefined) await this.#strengthen(verified, password)
      return result
    } catch (error) {
      if (verified === undefined || !isFirstStep(error)) throw error
      const passwordHash = await this.#strengthen(verified, password)
      const { tokens, clock } = this.#deps
      const step = newStep(tokens.seal, { email, passwordHash }, client, clock())
      throw new ServiceError('secondFactorRequired', { headers: { [STEP_HEADER]: step } })
    }
  }

  /**
   * The second step of a sign-in, whose first one has verified the password.
   * @throws {ServiceError} `signInStepEnded` after five minutes, in another browser, or with another password or e-mail meanwhile; and the
   * errors of {@link SignIns.complete}
   */
  continue({ email, step, code }: SecondStep, client: SessionClient): Promise<AuthResult> {
    const { signIns, users, tokens, loginThrottle, clock } = this.#deps
    const ended = () => new ServiceError('signInStepEnded')
    const verify = async (): Promise<VerifiedPassword> => {
      if (isOver(step, clock())) throw ended()
      // Throttled as passwords are: who has to wait, waits here too, and a forged step is a wrong attempt.
      const verified = await loginThrottle.check(emailSubject(email, client.ip), async () => {
        const found = await users.findByEmail(email)
        const passwordHash = found?.passwordHash ?? ''
        const isRight = isStepOf(tokens.seal, step, { email, passwordHash }, client)
        return isRight && passwordHash !== '' && found !== undefined
          ? { user: found.user, passwordHash }
          : undefined
      })
      if (verified === undefined) throw ended()
      return verified
    }
    return signIns.complete('password', { client, code, verify })
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

  /**
   * Replaces a weak hash. While hashing is overloaded, this is left to the next sign-in.
   * @returns the hash that the account has now, unless its password has changed meanwhile.
   */
  async #strengthen({ user, passwordHash }: VerifiedPassword, password: string): Promise<string> {
    if (!isWeak(passwordHash) || isAmbiguous(password, passwordHash)) return passwordHash
    const { accountStore, hasher } = this.#deps
    try {
      const strong = await hasher.hash(password)
      await accountStore.rehash(user.id, passwordHash, strong)
      return strong
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      return passwordHash
    }
  }
}
