/** Deleting one's own account. */
import { type Actor, newEvent } from '../audit-log/event.ts'
import type { SessionOwner } from '../auth/principal.ts'
import type { UserStore } from '../storage/stores.ts'
import type { Mails } from './mails.ts'
import type { Reauthentication } from './reauthentication.ts'

export interface AccountRemovalDeps {
  readonly users: UserStore
  readonly reauthentication: Reauthentication
  readonly mails: Mails
  readonly clock: () => number
}

export class AccountRemoval {
  readonly #deps: AccountRemovalDeps

  constructor(deps: AccountRemovalDeps) {
    this.#deps = deps
  }

  /**
   * Deletes the user and everything that belongs to them. Sessions end; the e-mail can be used again.
   * @throws {ServiceError} `wrongPassword`, and as {@link Reauthentication.withPassword}
   */
  async remove(owner: SessionOwner, password: string, actor: Actor, signal?: AbortSignal): Promise<void> {
    const { users, reauthentication, mails, clock } = this.#deps
    const { id, email } = owner.cachedUser.user
    await reauthentication.withPassword(
      owner,
      { password, wrong: 'wrongPassword', ip: actor.ip, signal },
      acting => users.remove(newEvent('user.deleted', actor, id, clock()), acting),
    )
    mails.send('accountDeleted', email)
  }
}
