/** Deleting one's own account. */

import { ServiceError } from '#base/errors'
import { type Actor, newEvent } from '../audit-log/event.ts'
import { actingSession, type SessionOwner } from '../auth/principal.ts'
import type { UserStore } from '../store/store.ts'
import type { FinishRemoval } from '../users/users.ts'
import type { Mails } from './mails.ts'

export interface AccountRemovalDeps {
  readonly users: UserStore
  readonly mails: Mails
  readonly finishRemoval: FinishRemoval
  readonly clock: () => number
}

export class AccountRemoval {
  readonly #deps: AccountRemovalDeps

  constructor(deps: AccountRemovalDeps) {
    this.#deps = deps
  }

  /**
   * Deletes the user and everything that belongs to them. Sessions end; the e-mail can be used again. The caller has required a proof of
   * identity.
   * @throws {ServiceError} `signInRequired` when the user was disabled or deleted, or the session ended meanwhile; and those of features that
   * refuse it
   */
  async remove(owner: SessionOwner, actor: Actor): Promise<void> {
    const { users, mails, finishRemoval, clock } = this.#deps
    const { user } = owner.cachedUser
    const outcome = await users.remove(
      newEvent('user.deleted', actor, user.id, clock()),
      actingSession(owner),
    )
    if (typeof outcome === 'string') throw new ServiceError('signInRequired')
    finishRemoval(outcome)
    mails.send('accountDeleted', user)
  }
}
