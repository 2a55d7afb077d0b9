/** What needs more than a session: the user's password once again. */

import type { Hashing } from '../auth/hashing.ts'
import { type ErrorName, ServiceError } from '../errors.ts'
import type { User } from '../users/user.ts'
import type { UserStore } from '../users/user-store.ts'
import { type PasswordGuesses, signedInUser } from './password-guesses.ts'

export interface PasswordConfirmationParts {
  readonly users: UserStore
  readonly hashing: Hashing
  readonly guesses: PasswordGuesses
}

export class PasswordConfirmation {
  readonly #parts: PasswordConfirmationParts

  constructor(parts: PasswordConfirmationParts) {
    this.#parts = parts
  }

  /**
   * @param wrong the error for a wrong password: it names the field in which the password was sent.
   * @param ip where the password comes from.
   * @returns the hash that the password was compared with; whoever acts upon it lets the store compare it again.
   * @throws {ServiceError} `wrong`; `signInRequired` when the user has changed meanwhile; `tooManyRequests`, `overloaded`,
   * `clientGone`, `draining`, `storeUnavailable`
   */
  async confirm(
    user: User,
    password: string,
    wrong: ErrorName,
    ip: string | null,
    signal?: AbortSignal,
  ): Promise<string> {
    const { users, hashing, guesses } = this.#parts
    const found = await users.findByEmail(user.email)
    if (found === undefined || found.user.id !== user.id) throw new ServiceError('signInRequired')
    const { passwordHash } = found
    const hash = await guesses.check(signedInUser(user, ip), async () =>
      (await hashing.verify(password, passwordHash, signal)) ? passwordHash : undefined,
    )
    if (hash === undefined) throw new ServiceError(wrong)
    return hash
  }
}
