/** Another password for a user who has forgotten theirs, by way of their mailbox. */

import { isOwnEmail } from '../auth/passwords.ts'
import { newSession, type SessionClient } from '../auth/session.ts'
import type { DeferredWork } from '../concurrency/deferred-work.ts'
import { ServiceError } from '../errors.ts'
import { anonymous, newEvent } from '../users/event.ts'
import type { AccountsParts } from './accounts.ts'
import { digestOf, type MailedTokenStore, type MailPurpose, newMailedToken } from './mailed-token.ts'
import type { Mails } from './mails.ts'
import { type SignedIn, signedIn } from './signed-in.ts'

export interface PasswordResetsParts extends AccountsParts {
  readonly mailedTokens: MailedTokenStore
  readonly mails: Mails
  readonly later: DeferredWork
}

const RESETS: readonly MailPurpose[] = ['passwordReset', 'accountExists']

export class PasswordResets {
  readonly #parts: PasswordResetsParts

  constructor(parts: PasswordResetsParts) {
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
   * Gives the user of a mailed token another password, and a fresh session in place of all that there are.
   * @throws {ServiceError} `badMailedToken`, `passwordIsEmail`, `overloaded`, `clientGone`, `draining`, `storeUnavailable`
   */
  async reset(
    token: string,
    password: string,
    client: SessionClient,
    signal?: AbortSignal,
  ): Promise<SignedIn> {
    const { mailedTokens, mails, tokens, hashing, knownUsers, limits, clock } = this.#parts
    const stored = await mailedTokens.find(digestOf(token), clock())
    // Before the hash: what costs 10 ms is for those who hold a token.
    if (stored === undefined || !RESETS.includes(stored.purpose)) throw new ServiceError('badMailedToken')
    const { userId, email } = stored
    if (isOwnEmail(password, email)) throw new ServiceError('passwordIsEmail')
    const newHash = await hashing.hash(password, signal)
    const now = clock()
    const session = newSession(userId, now, limits, client)
    const event = newEvent('password.reset', { type: 'user', id: userId, ip: client.ip }, userId, now)
    const user = await mailedTokens.resetPassword(stored, session, newHash, event)
    if (user === undefined) throw new ServiceError('badMailedToken')
    mails.passwordChanged(email)
    return signedIn(tokens, knownUsers.withLatest(user), session)
  }

  async #mail(email: string, ip: string | null): Promise<void> {
    const { users, mailedTokens, mails, clock } = this.#parts
    const found = await users.findByEmail(email)
    if (found === undefined) return
    const { id } = found.user
    const now = clock()
    const { token, stored } = newMailedToken('passwordReset', id, email, now)
    const event = newEvent('password.reset-requested', anonymous(ip), id, now)
    if ((await mailedTokens.add(stored, event, null)) === 'added') mails.passwordReset(email, token)
  }
}
