/** The removal of every factor of a user who has lost them. */

import { ServiceError } from '#base/errors'
import { type Actor, newEvent } from '../audit-log/event.ts'
import type { UserStore } from '../store/store.ts'
import type { Mails } from './mails.ts'
import type { SignIns } from './sign-ins.ts'

export interface FactorRemovalDeps {
  readonly users: Pick<UserStore, 'find' | 'removeFactors'>
  readonly signIns: Pick<SignIns, 'knownMethods'>
  readonly mails: Mails
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

export class FactorRemoval {
  readonly #deps: FactorRemovalDeps

  constructor(deps: FactorRemovalDeps) {
    this.#deps = deps
  }

  /** Removes authenticator app, recovery codes and passkeys. Sessions stay, but need a new proof of identity. @throws {ServiceError} `userNotFound` */
  async removeAll(userId: string, actor: Actor): Promise<void> {
    const { users, signIns, mails, clock } = this.#deps
    const user = await users.find(userId)
    if (user === undefined) throw new ServiceError('userNotFound')
    const event = newEvent('factors.removed', actor, userId, clock())
    const outcome = await users.removeFactors(event, signIns.knownMethods.methods)
    if (outcome === 'userNotFound') throw new ServiceError(outcome)
    if (outcome === 'removed') mails.send('factorsRemoved', user)
  }
}
