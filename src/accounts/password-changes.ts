/** Another password for a user who is signed in. */

import { isLikeEmail } from '../auth/passwords.ts'
import { newSession, type SessionClient } from '../auth/session.ts'
import { ServiceError } from '../errors.ts'
import { type Actor, newEvent } from '../users/event.ts'
import type { User } from '../users/user.ts'
import type { AccountsParts } from './accounts.ts'
import type { Mails } from './mails.ts'
import type { PasswordConfirmation } from './password-confirmation.ts'
import { type SignedIn, signedIn } from './signed-in.ts'

export interface PasswordChangesParts extends AccountsParts {
  readonly confirmation: PasswordConfirmation
  readonly mails: Mails
}

export interface PasswordChange {
  readonly currentPassword: string
  readonly newPassword: string
}

export class PasswordChanges {
  readonly #parts: PasswordChangesParts

  constructor(parts: PasswordChangesParts) {
    this.#parts = parts
  }

  /**
   * Gives a user another password, and a fresh session in place of all that there are.
   * @throws {ServiceError} `wrongCurrentPassword`, `newPasswordLikeEmail`, and as {@link PasswordConfirmation.confirm}
   */
  async change(
    user: User,
    { currentPassword, newPassword }: PasswordChange,
    actor: Actor,
    client: SessionClient,
    signal?: AbortSignal,
  ): Promise<SignedIn> {
    const { id, email } = user
    if (isLikeEmail(newPassword, email)) throw new ServiceError('newPasswordLikeEmail')
    const { accountStore, tokens, hashing, confirmation, mails, knownUsers, limits, clock } = this.#parts
    const verifiedHash = await confirmation.confirm(
      user,
      currentPassword,
      'wrongCurrentPassword',
      actor.ip,
      signal,
    )
    const newHash = await hashing.hash(newPassword, signal)
    const now = clock()
    const session = newSession(id, now, limits, client)
    const event = newEvent('password.changed', actor, id, now)
    const changed = await accountStore.changePassword(session, verifiedHash, newHash, event)
    if (changed === undefined) throw new ServiceError('signInRequired')
    mails.passwordChanged(email)
    return signedIn(tokens, knownUsers.withLatest(changed), session)
  }
}
