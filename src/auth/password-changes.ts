/** Another password for a user who is signed in. */
import { ServiceError } from '../errors.ts'
import { canonicalEmail, type User } from '../users/user.ts'
import { type AccountsParts, type SignedIn, signedIn } from './accounts.ts'
import { newSession, type SessionClient } from './session.ts'

export interface PasswordChange {
  readonly currentPassword: string
  readonly newPassword: string
}

export class PasswordChanges {
  readonly #parts: AccountsParts

  constructor(parts: AccountsParts) {
    this.#parts = parts
  }

  /**
   * Gives a user another password, and a fresh session in place of all that there are.
   * @throws {ServiceError} `wrongPassword`, `passwordIsEmail`; `signInRequired` when the user has changed meanwhile; `overloaded`,
   * `clientGone`, `draining`, `storeUnavailable`
   */
  async change(
    { id, email }: User,
    { currentPassword, newPassword }: PasswordChange,
    client: SessionClient,
    signal?: AbortSignal,
  ): Promise<SignedIn> {
    if (canonicalEmail(newPassword) === email) throw new ServiceError('passwordIsEmail')
    const { users, sessions, tokens, hashing, knownUsers, limits, clock } = this.#parts
    const found = await users.findByEmail(email)
    if (found === undefined || found.user.id !== id) throw new ServiceError('signInRequired')
    if (!(await hashing.verify(currentPassword, found.passwordHash, signal)))
      throw new ServiceError('wrongPassword')
    const newHash = await hashing.hash(newPassword, signal)
    const session = newSession(id, clock(), limits, client)
    const user = await sessions.changePassword(session, found.passwordHash, newHash)
    if (user === undefined) throw new ServiceError('signInRequired')
    return signedIn(tokens, { ...user, lastRequestAt: knownUsers.latest(id, user.lastRequestAt) }, session)
  }
}
