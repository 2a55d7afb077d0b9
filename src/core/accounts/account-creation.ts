/** New users: the row of one, and accounts that an administrator or the operator creates. */

import { ServiceError } from '#base/errors'
import { newId } from '#base/ids'
import { type Actor, newEvent } from '../audit-log/event.ts'
import type { BreachedPasswords } from '../passwords/breached-passwords.ts'
import type { PasswordHasher } from '../passwords/hasher.ts'
import type { AccountStore, UserStore } from '../store/store.ts'
import { NO_FACTORS } from '../users/factors.ts'
import { type FieldValues, newFields } from '../users/fields.ts'
import type { User, UserWithHash } from '../users/user.ts'
import { type ActingKey, EVERY_SCOPE, type ProtectedRole, requireScopesOf } from './protected-role.ts'

/** What a new user is given; everything else has defaults. */
export interface GivenUser extends Partial<FieldValues> {
  /** In canonical form. */
  readonly email: string
  readonly emailVerified?: boolean
  /** Given for users of another service, with `id`. */
  readonly disabled?: boolean
  readonly id?: string
}

/** @param passwordHash `null` for a user without a password. @param createdAt milliseconds since the epoch. */
export const newUser = (given: GivenUser, passwordHash: string | null, createdAt: number): UserWithHash => ({
  ...newFields(given),
  id: given.id ?? newId(),
  email: given.email,
  emailVerified: given.emailVerified ?? false,
  hasPassword: passwordHash !== null,
  passwordHash,
  disabled: given.disabled ?? false,
  factors: NO_FACTORS,
  createdAt,
  updatedAt: createdAt,
  lastRequestAt: null,
  version: 1,
})

/** An account to create, with a password or a hash. Without either, the user has no password: a reset sets the first one. */
export interface AccountInput extends GivenUser {
  readonly password?: string
  readonly passwordHash?: string
}

export interface NewAccountsDeps {
  readonly users: UserStore
  readonly accountStore: AccountStore
  readonly hasher: Pick<PasswordHasher, 'hash'>
  readonly breachedPasswords: Pick<BreachedPasswords, 'refuse'>
  /** `null`: there is none. */
  readonly protectedRole: ProtectedRole | null
  readonly clock: () => number
}

export class NewAccounts {
  readonly #deps: NewAccountsDeps

  constructor(deps: NewAccountsDeps) {
    this.#deps = deps
  }

  /**
   * @throws {ServiceError} `emailTaken`, `passwordAndHash`, `passwordBreached`, `overloaded`, `clientClosedRequest`, `draining`,
   * `storeUnavailable`, `scopeRequired`
   */
  async create(
    account: AccountInput,
    actor: Actor,
    signal?: AbortSignal,
    key: ActingKey = EVERY_SCOPE,
  ): Promise<User> {
    const { users, accountStore, protectedRole, clock } = this.#deps
    requireScopesOf(protectedRole, account, key)
    const { email, passwordHash, password } = account
    if (password !== undefined && passwordHash !== undefined) throw new ServiceError('passwordAndHash')
    if ((await users.findByEmail(email)) !== undefined) throw new ServiceError('emailTaken')
    const hash = passwordHash ?? (password === undefined ? null : await this.#hash(password, signal))
    const now = clock()
    const user = newUser(account, hash, now)
    const event = newEvent('user.created', actor, user.id, now)
    if (!(await accountStore.addUser(user, event, {}))) throw new ServiceError('emailTaken')
    return user
  }

  async #hash(password: string, signal: AbortSignal | undefined): Promise<string> {
    const { breachedPasswords, hasher } = this.#deps
    await breachedPasswords.refuse(password, 'passwordBreached', signal)
    return hasher.hash(password, signal)
  }
}
