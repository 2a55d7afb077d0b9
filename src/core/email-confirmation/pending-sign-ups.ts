/**
 * Sign-ups with REQUIRE_EMAIL_VERIFICATION. An account exists once its mailbox and its password are proved: until then nothing of a stranger
 * can be found, can sign in, or differs from a sign-up for an address that has an account.
 */

import { ServiceError } from '#base/errors'
import { newUser } from '../accounts/account-creation.ts'
import type { AuthResult } from '../accounts/auth-result.ts'
import type { AccountDeps } from '../accounts/deps.ts'
import { newToken, VERIFICATION_LIFETIME } from '../accounts/email-token.ts'
import type { SignIns } from '../accounts/sign-ins.ts'
import { actingUser, anonymous, newEvent } from '../audit-log/event.ts'
import type { Session, SessionClient } from '../auth/session.ts'
import { tokenSubject } from '../rate-limits/login-throttle.ts'
import type { PendingSignUp, PendingSignUpStore } from './stored-pending-sign-ups.ts'

type Deps = AccountDeps & { readonly store: PendingSignUpStore; readonly signIns: SignIns }

export class PendingSignUps {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Mails the link of a sign-up, or a notice if the address has an account: deferred, so that response times do not show which. */
  async add(
    signUp: Pick<PendingSignUp, 'email' | 'passwordHash' | 'fields'>,
    ip: string | null,
    returnTo: string | null,
  ): Promise<void> {
    const { store, mails, deferred, returnTargets, clock } = this.#deps
    const now = clock()
    const { token, digest } = newToken(now)
    const { email, fields } = signUp
    const event = newEvent('user.sign-up-requested', anonymous(ip), null, now)
    const pending = { ...signUp, digest, createdAt: now, expiresAt: now + VERIFICATION_LIFETIME }
    const { maySend, hasAccount } = await store.addPendingSignUp(pending, event, 'user.sign-up-repeated')
    if (!maySend) return
    deferred.run(async () => {
      // Both in the language of the sign-up.
      const recipient = { email, locale: fields.locale }
      if (hasAccount) return mails.send('accountExists', recipient)
      await returnTargets.keep(token, returnTo, pending.expiresAt)
      mails.send('signUp', recipient, { token })
    })
  }

  async find(digest: string): Promise<PendingSignUp | undefined> {
    return this.#deps.store.findPendingSignUp(digest, this.#deps.clock())
  }

  /**
   * Opens the account, confirmed, and its first session.
   * @throws {ServiceError} `wrongPassword`, `badEmailToken`, `emailTaken`, `tooManyRequests`
   */
  async open(
    { digest, email, passwordHash, fields }: PendingSignUp,
    password: string,
    client: SessionClient,
    signal?: AbortSignal,
  ): Promise<AuthResult> {
    const { store, hasher, loginThrottle, signIns, clock } = this.#deps
    const isRight = await loginThrottle.check(
      tokenSubject(digest, email, client.ip),
      async () => (await hasher.verify(password, passwordHash, signal)) || undefined,
    )
    if (isRight === undefined) throw new ServiceError('wrongPassword')
    const now = clock()
    const user = newUser({ ...fields, email, emailVerified: true }, passwordHash, now)
    const event = newEvent('user.signed-up', actingUser(user.id, client.ip), user.id, now)
    const open = async (session: Session) => {
      const outcome = await store.openAccount(digest, user, session, event)
      if (outcome === 'emailTaken') throw new ServiceError('emailTaken')
      return outcome !== 'notFound'
    }
    const opened = await signIns.openAccount('password', { newUser: user, open }, client)
    if (opened === undefined) throw new ServiceError('badEmailToken')
    return opened
  }

  async remove({ digest }: PendingSignUp): Promise<void> {
    if (!(await this.#deps.store.removePendingSignUp(digest))) throw new ServiceError('badEmailToken')
  }
}
