/** Accounts that somebody else opens for their owners. */

import { type Actor, newEvent } from '../audit-log/event.ts'
import { ServiceError } from '../errors.ts'
import { dummyHash } from '../passwords/argon2.ts'
import type { PasswordHasher } from '../passwords/hasher.ts'
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

export interface NewAccountsDeps {
  readonly users: UserStore
  readonly accountStore: AccountStore
  readonly hashing: Pick<PasswordHasher, 'hash'>
  readonly clock: () => number
}

export class NewAccounts {
  readonly #parts: NewAccountsDeps

  constructor(parts: NewAccountsDeps) {
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
    return password === undefined ? dummyHash() : this.#parts.hashing.hash(password, signal)
  }
}
