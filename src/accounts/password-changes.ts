/** Another password for a user who is signed in. */

import { canonicalPassword, isOwnEmail } from '../auth/passwords.ts'
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
   * @throws {ServiceError} `wrongCurrentPassword`, `newPasswordIsEmail`, `newPasswordIsCurrent`, and as {@link PasswordConfirmation.confirmed}
   */
  async change(
    user: User,
    { currentPassword, newPassword }: PasswordChange,
    actor: Actor,
    client: SessionClient,
    signal?: AbortSignal,
  ): Promise<SignedIn> {
    const { id, email } = user
    if (isOwnEmail(newPassword, email)) throw new ServiceError('newPasswordIsEmail')
    const { accountStore, tokens, hashing, confirmation, mails, knownUsers, limits, clock } = this.#parts
    let newHash: string | undefined
    const change = async (verifiedHash: string) => {
      if (canonicalPassword(newPassword) === canonicalPassword(currentPassword))
        throw new ServiceError('newPasswordIsCurrent')
      newHash ??= await hashing.hash(newPassword, signal)
      const now = clock()
      const session = newSession(id, now, limits, client)
      const event = newEvent('password.changed', actor, id, now)
      const changed = await accountStore.changePassword(session, verifiedHash, newHash, event)
      return typeof changed === 'string' ? changed : { changed, session }
    }
    const { changed, session } = await confirmation.confirmed(
      user,
      { password: currentPassword, wrong: 'wrongCurrentPassword', ip: actor.ip, signal },
      change,
    )
    mails.passwordChanged(changed.email)
    return signedIn(tokens, knownUsers.withLatest(changed), session)
  }
}
