/** Requests for links that verify or change e-mail addresses. */

import { ServiceError } from '#base/errors'
import { type Actor, anonymous, newEvent } from '../audit-log/event.ts'
import { actingSession, type SessionOwner } from '../auth/principal.ts'
import type { User } from '../users/user.ts'
import type { AccountDeps } from './deps.ts'
import { MAIL_WINDOW, MAX_MAILS, newEmailToken, tooManyMails } from './email-token.ts'

export class EmailAddresses {
  readonly #deps: AccountDeps

  constructor(deps: AccountDeps) {
    this.#deps = deps
  }

  /**
   * Mails a link to the new address, and a notice to the current one. The caller has required a proof of identity.
   * @param returnTo where the page behind the link leads back to; `null`: nowhere.
   * @throws {ServiceError} `emailIsCurrent`, `emailTaken`, `tooManyRequests`; `signInRequired` when the user
   * was disabled or deleted, or the session ended meanwhile
   */
  async requestChange(
    owner: SessionOwner,
    email: string,
    actor: Actor,
    returnTo: string | null,
  ): Promise<void> {
    const { users, emailTokens, mails, deferred, requireEmailVerification, clock, returnTargets } = this.#deps
    const { user } = owner.cachedUser
    if (email === user.email) throw new ServiceError('emailIsCurrent')
    const holder = await users.findByEmail(email)
    if (holder !== undefined && !requireEmailVerification) throw new ServiceError('emailTaken')
    const now = clock()
    const { token, stored } = newEmailToken('emailChange', user.id, email, now)
    const event = newEvent('email.change-requested', actor, user.id, now)
    const outcome = await emailTokens.add(stored, event, actingSession(owner))
    if (outcome === 'tooManyMails') throw tooManyMails()
    if (outcome !== 'added') throw new ServiceError('signInRequired')
    // Deferred, so that response times reveal nothing.
    await returnTargets.keep(token, returnTo, stored.expiresAt)
    if (holder !== undefined) deferred.run(() => this.#notifyHolder(email, actor.ip))
    else mails.send('emailChange', { email, locale: user.locale }, { token })
    mails.send('emailChangeRequested', user, { newEmail: email })
  }

  /** Mails the user of a request another link for verification: {@link sendVerification}. */
  resendVerification(
    { cachedUser, credentialId }: SessionOwner,
    actor: Actor,
    returnTo: string | null,
  ): Promise<void> {
    return this.sendVerification(cachedUser.user, credentialId, actor, returnTo)
  }

  /**
   * Mails a user a link for verification, unless the e-mail is verified. @param sessionId in which the user asks for it; `null`: another does.
   * @throws {ServiceError} `tooManyRequests`; `signInRequired` if the user was disabled or deleted, or the session has ended
   */
  async sendVerification(
    user: User,
    sessionId: string | null,
    actor: Actor,
    returnTo: string | null,
  ): Promise<void> {
    if (user.emailVerified) return
    const { emailTokens, mails, clock, returnTargets } = this.#deps
    const now = clock()
    const { token, stored } = newEmailToken('verification', user.id, user.email, now)
    const event = newEvent('email.verification-requested', actor, user.id, now)
    const outcome = await emailTokens.add(stored, event, sessionId)
    if (outcome === 'tooManyMails') throw tooManyMails()
    if (outcome !== 'added') throw new ServiceError('signInRequired')
    await returnTargets.keep(token, returnTo, stored.expiresAt)
    mails.send('verification', user, { token })
  }

  /** {@link sendVerification} for an administrator. @throws {ServiceError} `userNotFound`, `accountDisabled`, `tooManyRequests` */
  async sendVerificationTo(userId: string, actor: Actor): Promise<void> {
    const user = await this.#deps.users.find(userId)
    if (user === undefined) throw new ServiceError('userNotFound')
    if (user.disabled) throw new ServiceError('accountDisabled')
    await this.sendVerification(user, null, actor, null)
  }

  /** The response does not reveal that an e-mail has an account. Its owner is mailed instead, within the limit. */
  async #notifyHolder(email: string, ip: string | null): Promise<void> {
    const { users, events, mails, clock } = this.#deps
    const holder = (await users.findByEmail(email))?.user
    if (holder === undefined) return
    const now = clock()
    const event = newEvent('user.sign-up-repeated', anonymous(ip), holder.id, now)
    const outcome = await events.recordLimited(event, MAX_MAILS, now - MAIL_WINDOW + 1)
    if (outcome === 'recorded') mails.send('accountExists', holder)
  }
}
