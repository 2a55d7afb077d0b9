/** The end of an account by its owner's will. */
import { ServiceError } from '../errors.ts'
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
   * @throws {ServiceError} `wrongPassword`, and as {@link PasswordConfirmation.confirm}
   */
  async remove(user: User, password: string, actor: Actor, signal?: AbortSignal): Promise<void> {
    const { users, confirmation, mails, clock } = this.#parts
    const verifiedHash = await confirmation.confirm(user, password, 'wrongPassword', actor.ip, signal)
    const event = newEvent('user.deleted', actor, user.id, clock())
    if (!(await users.remove(event, verifiedHash))) throw new ServiceError('signInRequired')
    mails.accountDeleted(user.email)
  }
}
