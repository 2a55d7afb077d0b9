/** Another password for a user who is signed in. */

import { type Actor, newEvent } from '../audit-log/event.ts'
import { newSession, type SessionClient } from '../auth/session.ts'
import { ServiceError } from '../errors.ts'
import { canonicalPassword, isOwnEmail } from '../passwords/policy.ts'
import type { User } from '../users/user.ts'
import type { AccountsDeps } from './accounts.ts'
import { type SignedIn, signedIn } from './auth-result.ts'
import type { Mails } from './mails.ts'
import type { Reauthentication } from './reauthentication.ts'

export interface PasswordChangesDeps extends AccountsDeps {
  readonly reauthentication: Reauthentication
  readonly mails: Mails
}

export interface PasswordChange {
  readonly currentPassword: string
  readonly newPassword: string
}

export class PasswordChanges {
  readonly #parts: PasswordChangesDeps

  constructor(parts: PasswordChangesDeps) {
    this.#parts = parts
  }

  /**
   * Gives a user another password, and a fresh session in place of all that there are.
   * @throws {ServiceError} `wrongCurrentPassword`, `newPasswordIsEmail`, `newPasswordIsCurrent`, and as {@link Reauthentication.confirmed}
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
    const { accountStore, tokens, hashing, reauthentication, mails, userCache, limits, clock } = this.#parts
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
    const { changed, session } = await reauthentication.confirmed(
      user,
      { password: currentPassword, wrong: 'wrongCurrentPassword', ip: actor.ip, signal },
      change,
    )
    mails.send('passwordChanged', changed.email)
    return signedIn(tokens, userCache.withLatest(changed), session)
  }
}
