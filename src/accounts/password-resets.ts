/** Another password for a user who has forgotten theirs, by way of their mailbox. */

import { anonymous, newEvent } from '../audit-log/event.ts'
import { newSession, type SessionClient } from '../auth/session.ts'
import type { DeferredWork } from '../concurrency/deferred-work.ts'
import { ServiceError } from '../errors.ts'
import { isOwnEmail } from '../passwords/policy.ts'
import type { AccountsDeps } from './accounts.ts'
import { type SignedIn, signedIn } from './auth-result.ts'
import { digestOf, type EmailTokenStore, isTokenFor, newEmailToken } from './email-token.ts'
import type { Mails } from './mails.ts'

export interface PasswordResetsDeps extends AccountsDeps {
  readonly emailTokens: EmailTokenStore
  readonly mails: Mails
  readonly later: DeferredWork
}

export class PasswordResets {
  readonly #parts: PasswordResetsDeps

  constructor(parts: PasswordResetsDeps) {
    this.#parts = parts
  }

  /**
   * Mails a link to choose another password, if there is an enabled account with this e-mail. All of it happens later, so
   * that neither the answer nor its time tells whether there is one.
   * @param email in canonical form.
   */
  request(email: string, ip: string | null): void {
    this.#parts.later.run(() => this.#mail(email, ip))
  }

  /**
   * Gives the user of a e-mail token another password, and a fresh session in place of all that there are.
   * @throws {ServiceError} `badEmailToken`, `passwordIsEmail`, `overloaded`, `clientGone`, `draining`, `storeUnavailable`
   */
  async reset(
    token: string,
    password: string,
    client: SessionClient,
    signal?: AbortSignal,
  ): Promise<SignedIn> {
    const { emailTokens, mails, tokens, hashing, userCache, limits, clock } = this.#parts
    const stored = await emailTokens.find(digestOf(token), clock())
    // Before the hash: what costs 10 ms is for those who hold a token.
    if (!isTokenFor('resetPassword', stored)) throw new ServiceError('badEmailToken')
    const { userId, email } = stored
    if (isOwnEmail(password, email)) throw new ServiceError('passwordIsEmail')
    const newHash = await hashing.hash(password, signal)
    const now = clock()
    const session = newSession(userId, now, limits, client)
    const event = newEvent('password.reset', { type: 'user', id: userId, ip: client.ip }, userId, now)
    const user = await emailTokens.resetPassword(stored, session, newHash, event)
    if (user === undefined) throw new ServiceError('badEmailToken')
    mails.send('passwordChanged', email)
    return signedIn(tokens, userCache.withLatest(user), session)
  }

  async #mail(email: string, ip: string | null): Promise<void> {
    const { users, emailTokens, mails, clock } = this.#parts
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
