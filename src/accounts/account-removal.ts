/** The end of an account by its owner's will. */
import { type Actor, newEvent } from '../audit-log/event.ts'
import type { User } from '../users/user.ts'
import type { UserStore } from '../users/user-store.ts'
import type { Mails } from './mails.ts'
import type { Reauthentication } from './reauthentication.ts'

export interface AccountRemovalDeps {
  readonly users: UserStore
  readonly reauthentication: Reauthentication
  readonly mails: Mails
  readonly clock: () => number
}

export class AccountRemoval {
  readonly #parts: AccountRemovalDeps

  constructor(parts: AccountRemovalDeps) {
    this.#parts = parts
  }

  /**
   * Removes the user with all that belongs to them: sessions end, the e-mail is free again.
   * @throws {ServiceError} `wrongPassword`, and as {@link Reauthentication.confirmed}
   */
  async remove(user: User, password: string, actor: Actor, signal?: AbortSignal): Promise<void> {
    const { users, reauthentication, mails, clock } = this.#parts
    await reauthentication.confirmed(
      user,
      { password, wrong: 'wrongPassword', ip: actor.ip, signal },
      verifiedHash => users.remove(newEvent('user.deleted', actor, user.id, clock()), verifiedHash),
    )
    mails.send('accountDeleted', user.email)
  }
}
