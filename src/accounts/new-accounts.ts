/** Accounts that somebody else opens for their owners. */

import { hashOfNobody } from '../auth/argon2-hash.ts'
import type { Hashing } from '../auth/hashing.ts'
import { ServiceError } from '../errors.ts'
import { type Actor, newEvent } from '../users/event.ts'
import type { User } from '../users/user.ts'
import type { UserStore } from '../users/user-store.ts'
import type { AccountStore } from './account-store.ts'
import { type NewAccount, newUser } from './new-user.ts'

/** At most one of the two secrets; without any, the account waits for a reset of its password. */
export interface CreatedAccount extends NewAccount {
  readonly password?: string
  /** What another service has made of a password. */
  readonly passwordHash?: string
}

export interface NewAccountsParts {
  readonly users: UserStore
  readonly accountStore: AccountStore
  readonly hashing: Pick<Hashing, 'hash'>
  readonly clock: () => number
}

export class NewAccounts {
  readonly #parts: NewAccountsParts

  constructor(parts: NewAccountsParts) {
    this.#parts = parts
  }

  /** @throws {ServiceError} `emailTaken`, `passwordTwice`, `overloaded`, `clientGone`, `draining`, `storeUnavailable` */
  async create(account: CreatedAccount, actor: Actor, signal?: AbortSignal): Promise<User> {
    const { users, accountStore, clock } = this.#parts
    const { email, passwordHash, password } = account
    if (password !== undefined && passwordHash !== undefined) throw new ServiceError('passwordTwice')
    if ((await users.findByEmail(email)) !== undefined) throw new ServiceError('emailTaken')
    const hash = passwordHash ?? (await this.#hash(password, signal))
    const now = clock()
    const user = newUser(account, now)
    const event = newEvent('user.created', actor, user.id, now)
    if (!(await accountStore.addUser({ ...user, passwordHash: hash }, event, {})))
      throw new ServiceError('emailTaken')
    return user
  }

  #hash(password: string | undefined, signal: AbortSignal | undefined): Promise<string> | string {
    return password === undefined ? hashOfNobody() : this.#parts.hashing.hash(password, signal)
  }
}
