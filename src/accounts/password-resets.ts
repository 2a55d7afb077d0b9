/** Resetting a forgotten password, by a link that is mailed. */
import { actingUser, anonymous, newEvent } from '../audit-log/event.ts'
import type { AccessTokens } from '../auth/access-tokens.ts'
import { newSession, type SessionClient, type SessionLimits } from '../auth/session.ts'
import type { DeferredWork } from '../concurrency/deferred-work.ts'
import { ServiceError } from '../errors.ts'
import type { BreachedPasswords } from '../passwords/breached-passwords.ts'
import type { PasswordHasher } from '../passwords/hasher.ts'
import { isOwnEmail } from '../passwords/policy.ts'
import type { AccountStore, EmailTokenStore, UserStore } from '../storage/stores.ts'
import { type AuthResult, authResult } from './auth-result.ts'
import { digestOf, type EmailToken, isTokenFor, newEmailToken } from './email-token.ts'
import type { Mails } from './mails.ts'
import { retryOnChange } from './retry.ts'
import { PresentedCode, type SecondFactor } from './second-factor.ts'

export interface PasswordResetsDeps {
  readonly users: UserStore
  readonly emailTokens: EmailTokenStore
  readonly accountStore: Pick<AccountStore, 'signInByMailbox'>
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
   * Uses a token: changes the password of its user, ends all sessions and opens a new one. If the e-mail was never confirmed, it empties the
   * account: somebody else may have opened it.
   * @param code for users with a second factor: a mailbox alone must not open an account that has one. An account that was never confirmed
   * needs none: the factor may be a stranger's.
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
    const { emailTokens, mails, tokens, breachedPasswords, secondFactor, clock } = this.#deps
    const stored = await emailTokens.find(digestOf(token), clock())
    // Before hashing, which costs 10 ms: clients without a token must not cause it.
    if (!isTokenFor('resetPassword', stored)) throw new ServiceError('badEmailToken')
    const { email } = stored
    if (isOwnEmail(password, email)) throw new ServiceError('passwordIsEmail')
    // Before the code, which works once.
    await breachedPasswords.refuse(password, 'passwordBreached', signal)
    const presented = new PresentedCode(secondFactor, code, client.ip)
    const done = await retryOnChange(() => this.#tryReset(stored, password, presented, client, signal))
    if (done === undefined) throw new ServiceError('badEmailToken')
    const { user, removed, session } = done
    mails.send('passwordChanged', email, { isFirstConfirmation: removed !== null })
    if (removed !== null && removed.length > 0) mails.send('accessRemoved', email, { removed })
    return authResult(tokens, user, session)
  }

  /** @returns `undefined` when the user has changed meanwhile. */
  async #tryReset(
    { digest, userId, email }: EmailToken,
    password: string,
    code: PresentedCode,
    client: SessionClient,
    signal: AbortSignal | undefined,
  ) {
    const { users, accountStore, hasher, limits, clock } = this.#deps
    const found = await users.find(userId)
    if (found === undefined) throw new ServiceError('badEmailToken')
    const { emailVerified, factors } = found
    if (emailVerified) await code.require(found)
    const newHash = await hasher.hash(password, signal)
    const now = clock()
    const session = newSession(userId, now, limits, client)
    const event = newEvent('password.reset', actingUser(userId, client.ip), userId, now)
    const proof = { name: 'useResetToken', args: [digest] }
    const signIn = { proof, email, emailVerified, factors, newHash }
    const outcome = await accountStore.signInByMailbox(signIn, session, event)
    if (outcome === 'userChanged') return undefined
    if (typeof outcome === 'string') throw new ServiceError('badEmailToken')
    return { ...outcome, session }
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
