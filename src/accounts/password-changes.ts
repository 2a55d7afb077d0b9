/** Changing the password of a signed-in user. */
import { type Actor, newEvent } from '../audit-log/event.ts'
import type { AccessTokens } from '../auth/access-tokens.ts'
import type { SessionOwner } from '../auth/principal.ts'
import { newSession, type SessionClient, type SessionLimits } from '../auth/session.ts'
import { ServiceError } from '../errors.ts'
import type { BreachedPasswords } from '../passwords/breached-passwords.ts'
import type { PasswordHasher } from '../passwords/hasher.ts'
import { canonicalPassword, isOwnEmail } from '../passwords/policy.ts'
import type { AccountStore, VerifiedSession } from '../storage/stores.ts'
import { type AuthResult, authResult } from './auth-result.ts'
import type { Mails } from './mails.ts'
import type { Reauthentication } from './reauthentication.ts'

export interface PasswordChangesDeps {
  readonly accountStore: AccountStore
  readonly tokens: AccessTokens
  readonly hasher: PasswordHasher
  readonly breachedPasswords: Pick<BreachedPasswords, 'refuse'>
  readonly reauthentication: Reauthentication
  readonly mails: Mails
  readonly limits: SessionLimits
  readonly clock: () => number
}

export interface PasswordChange {
  readonly currentPassword: string
  readonly newPassword: string
}

export class PasswordChanges {
  readonly #deps: PasswordChangesDeps

  constructor(deps: PasswordChangesDeps) {
    this.#deps = deps
  }

  /**
   * Changes the password, ends all sessions of the user and opens a new one.
   * @throws {ServiceError} `wrongCurrentPassword`, `newPasswordIsEmail`, `newPasswordIsCurrent`, `newPasswordBreached`, and as
   * {@link Reauthentication.withPassword}
   */
  async change(
    owner: SessionOwner,
    { currentPassword, newPassword }: PasswordChange,
    actor: Actor,
    client: SessionClient,
    signal?: AbortSignal,
  ): Promise<AuthResult> {
    const { id, email } = owner.cachedUser.user
    if (isOwnEmail(newPassword, email)) throw new ServiceError('newPasswordIsEmail')
    const { accountStore, tokens, reauthentication, mails, limits, clock } = this.#deps
    let newHash: string | undefined
    const change = async (acting: VerifiedSession) => {
      if (canonicalPassword(newPassword) === canonicalPassword(currentPassword))
        throw new ServiceError('newPasswordIsCurrent')
      newHash ??= await this.#hash(newPassword, signal)
      const now = clock()
      const session = newSession(id, now, limits, client)
      const event = newEvent('password.changed', actor, id, now)
      const changed = await accountStore.changePassword(session, acting, newHash, event)
      return typeof changed === 'string' ? changed : { changed, session }
    }
    const { changed, session } = await reauthentication.withPassword(
      owner,
      { password: currentPassword, wrong: 'wrongCurrentPassword', ip: actor.ip, signal },
      change,
    )
    mails.send('passwordChanged', changed.email, { isFirstConfirmation: false })
    return authResult(tokens, changed, session)
  }

  async #hash(newPassword: string, signal: AbortSignal | undefined): Promise<string> {
    const { breachedPasswords, hasher } = this.#deps
    await breachedPasswords.refuse(newPassword, 'newPasswordBreached', signal)
    return hasher.hash(newPassword, signal)
  }
}
