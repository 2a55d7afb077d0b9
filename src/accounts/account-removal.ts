/** The end of an account by its owner's will. */
import { type Actor, newEvent } from '../users/event.ts'
import type { User } from '../users/user.ts'
import type { UserStore } from '../users/user-store.ts'
import type { Mails } from './mails.ts'
import type { PasswordConfirmation } from './password-confirmation.ts'

export interface AccountRemovalParts {
  readonly users: UserStore
  readonly confirmation: PasswordConfirmation
  readonly mails: Mails
  readonly clock: () => number
}

export class AccountRemoval {
  readonly #parts: AccountRemovalParts

  constructor(parts: AccountRemovalParts) {
    this.#parts = parts
  }

  /**
   * Removes the user with all that belongs to them: sessions end, the e-mail is free again.
   * @throws {ServiceError} `wrongPassword`, and as {@link PasswordConfirmation.confirmed}
   */
  async remove(user: User, password: string, actor: Actor, signal?: AbortSignal): Promise<void> {
    const { users, confirmation, mails, clock } = this.#parts
    await confirmation.confirmed(
      user,
      { password, wrong: 'wrongPassword', ip: actor.ip, signal },
      verifiedHash => users.remove(newEvent('user.deleted', actor, user.id, clock()), verifiedHash),
    )
    mails.accountDeleted(user.email)
  }
}
