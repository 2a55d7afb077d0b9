/** Resetting a forgotten password, by a link that is mailed. */

import { ServiceError } from '#base/errors'
import { type Actor, anonymous, newEvent } from '../audit-log/event.ts'
import type { SessionClient } from '../auth/session.ts'
import { isOwnEmail } from '../passwords/policy.ts'
import { needsCode } from '../users/factors.ts'
import type { User } from '../users/user.ts'
import type { AuthResult } from './auth-result.ts'
import type { AccountDeps } from './deps.ts'
import { digestOf, type EmailToken, isTokenFor, newEmailToken, tooManyMails } from './email-token.ts'
import type { SignIns, VerifiedSignIn } from './sign-ins.ts'

type Deps = AccountDeps & { readonly signIns: SignIns }

export class PasswordResets {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /**
   * Mails a link to choose another password, if there is an enabled account with this e-mail (in canonical form). Deferred, so that neither
   * the response nor its time reveals whether there is one. @param returnTo where the page behind the link leads back to.
   */
  request(email: string, ip: string | null, returnTo?: string | null): void {
    this.#deps.deferred.run(() => this.#mail(email, ip, returnTo))
  }

  /**
   * Mails a user a link to choose another password, for an administrator.
   * @throws {ServiceError} `userNotFound`, `accountDisabled`, `tooManyRequests`
   */
  async send(userId: string, actor: Actor): Promise<void> {
    const user = await this.#deps.users.find(userId)
    if (user === undefined) throw new ServiceError('userNotFound')
    if (user.disabled) throw new ServiceError('accountDisabled')
    if (!(await this.#mailTo(user, actor))) throw tooManyMails()
  }

  /** Reads a token without using it. @returns whether its user needs a code. @throws {ServiceError} `badEmailToken` */
  async check(token: string): Promise<boolean> {
    const { userId } = await this.#find(token)
    const user = await this.#findUser(userId)
    return user.emailVerified && needsCode(user)
  }

  /**
   * Uses a token: changes the password, ends all sessions and opens a new one. If the e-mail was never confirmed, it empties the account:
   * somebody else may have opened it. @param code for users with a second factor: a mailbox alone must not open their account. One that was
   * never confirmed needs none: the factor may be a stranger's.
   * @throws {ServiceError} `badEmailToken`, `passwordIsEmail`, `passwordBreached`, `secondFactorRequired`, `wrongSecondFactor`
   */
  async reset(
    token: string,
    password: string,
    code: string | undefined,
    client: SessionClient,
    signal?: AbortSignal,
  ): Promise<AuthResult> {
    const { signIns, mails, hasher, breachedPasswords } = this.#deps
    // Clients without a token must not cause hashing.
    const { digest, userId, email } = await this.#find(token)
    if (isOwnEmail(password, email)) throw new ServiceError('passwordIsEmail')
    // Before the code, which works once.
    await breachedPasswords.refuse(password, 'passwordBreached', signal)
    let isFirstConfirmation = false
    const verify = async (): Promise<VerifiedSignIn> => {
      const user = await this.#findUser(userId)
      isFirstConfirmation = !user.emailVerified
      return {
        user,
        proof: ['useResetToken', digest],
        newHash: () => hasher.hash(password, signal),
        event: 'password.reset',
      }
    }
    const result = await signIns.complete('passwordReset', { client, code, verify })
    mails.send('passwordChanged', { email, locale: result.user.locale }, { isFirstConfirmation })
    return result
  }

  async #find(token: string): Promise<EmailToken> {
    const { emailTokens, clock } = this.#deps
    const stored = await emailTokens.find(digestOf(token), clock())
    if (!isTokenFor('resetPassword', stored)) throw new ServiceError('badEmailToken')
    return stored
  }

  async #findUser(id: string): Promise<User> {
    const user = await this.#deps.users.find(id)
    if (user === undefined || user.disabled) throw new ServiceError('badEmailToken')
    return user
  }

  async #mail(email: string, ip: string | null, returnTo?: string | null): Promise<void> {
    const found = await this.#deps.users.findByEmail(email)
    if (found !== undefined) await this.#mailTo(found.user, anonymous(ip), returnTo)
  }

  /** @returns whether the mail is sent: not to users who are disabled, or get too many. */
  async #mailTo(user: User, actor: Actor, returnTo?: string | null): Promise<boolean> {
    const { emailTokens, mails, returnTargets, clock } = this.#deps
    const now = clock()
    const { token, stored } = newEmailToken('passwordReset', user.id, user.email, now)
    const event = newEvent('password.reset-requested', actor, user.id, now)
    if ((await emailTokens.add(stored, event, null)) !== 'added') return false
    await returnTargets.keep(token, returnTo, stored.expiresAt)
    mails.send('passwordReset', user, { token })
    return true
  }
}
