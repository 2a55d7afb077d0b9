/** Resetting a forgotten password, by a link that is mailed. */
import { actingUser, anonymous, newEvent } from '../audit-log/event.ts'
import type { AccessTokens } from '../auth/access-tokens.ts'
import { newSession, type SessionClient, type SessionLimits } from '../auth/session.ts'
import type { DeferredWork } from '../concurrency/deferred-work.ts'
import { ServiceError } from '../errors.ts'
import type { BreachedPasswords } from '../passwords/breached-passwords.ts'
import type { PasswordHasher } from '../passwords/hasher.ts'
import { isOwnEmail } from '../passwords/policy.ts'
import type { UserStore } from '../users/user-store.ts'
import { type AuthResult, authResult } from './auth-result.ts'
import { digestOf, isTokenFor, newEmailToken } from './email-token.ts'
import type { EmailTokenStore } from './email-token-store.ts'
import type { Mails } from './mails.ts'
import { PresentedCode, type SecondFactor } from './second-factor.ts'

export interface PasswordResetsDeps {
  readonly users: UserStore
  readonly emailTokens: EmailTokenStore
  readonly tokens: AccessTokens
  readonly hasher: PasswordHasher
  readonly breachedPasswords: Pick<BreachedPasswords, 'refuse'>
  readonly secondFactor: SecondFactor
  readonly mails: Mails
  readonly limits: SessionLimits
  readonly clock: () => number
  readonly deferred: DeferredWork
}

export class PasswordResets {
  readonly #deps: PasswordResetsDeps

  constructor(deps: PasswordResetsDeps) {
    this.#deps = deps
  }

  /**
   * Mails a link to choose another password, if there is an enabled account with this e-mail. All work is deferred, so that
   * neither the response nor its time reveals whether there is one.
   * @param email in canonical form.
   */
  request(email: string, ip: string | null): void {
    this.#deps.deferred.run(() => this.#mail(email, ip))
  }

  /**
   * Uses a token: changes the password of its user, ends all sessions and opens a new one. If that confirms the e-mail for the first
   * time, it removes passkeys and API keys: somebody else may have opened the account.
   * @param code for users with a second factor: a mailbox alone must not open an account that has one.
   * @throws {ServiceError} `badEmailToken`, `passwordIsEmail`, `passwordBreached`, `secondFactorRequired`, `wrongSecondFactor`,
   * `codesUnavailable`, `tooManyRequests`, `overloaded`, `clientClosedRequest`, `draining`, `storeUnavailable`
   */
  async reset(
    token: string,
    password: string,
    code: string | undefined,
    client: SessionClient,
    signal?: AbortSignal,
  ): Promise<AuthResult> {
    const { users, emailTokens, mails, tokens, hasher, breachedPasswords, secondFactor, limits, clock } =
      this.#deps
    const stored = await emailTokens.find(digestOf(token), clock())
    // Before hashing, which costs 10 ms: clients without a token must not cause it.
    if (!isTokenFor('resetPassword', stored)) throw new ServiceError('badEmailToken')
    const { userId, email } = stored
    if (isOwnEmail(password, email)) throw new ServiceError('passwordIsEmail')
    const found = await users.find(userId)
    if (found === undefined) throw new ServiceError('badEmailToken')
    // Before the code, which works once.
    await breachedPasswords.refuse(password, 'passwordBreached', signal)
    await new PresentedCode(secondFactor, code, client.ip).require(found)
    const newHash = await hasher.hash(password, signal)
    const now = clock()
    const session = newSession(userId, now, limits, client)
    const event = newEvent('password.reset', actingUser(userId, client.ip), userId, now)
    const user = await emailTokens.resetPassword(stored, found.factors, session, newHash, event)
    if (user === undefined) throw new ServiceError('badEmailToken')
    mails.send('passwordChanged', email, { isFirstConfirmation: !found.emailVerified })
    return authResult(tokens, user, session)
  }

  async #mail(email: string, ip: string | null): Promise<void> {
    const { users, emailTokens, mails, clock } = this.#deps
    const found = await users.findByEmail(email)
    if (found === undefined) return
    const { id } = found.user
    const now = clock()
    const { token, stored } = newEmailToken('passwordReset', id, email, now)
    const event = newEvent('password.reset-requested', anonymous(ip), id, now)
    if ((await emailTokens.add(stored, event, null)) === 'added')
      mails.send('passwordReset', email, { token })
  }
}
