/** The password of a signed-in user: a change, the first one, and its removal. */

import { ServiceError } from '#base/errors'
import { type Actor, newEvent } from '../audit-log/event.ts'
import { actingSession, type Principal, type SessionOwner } from '../auth/principal.ts'
import { newSession, type SessionClient } from '../auth/session.ts'
import { canonicalPassword, isOwnEmail } from '../passwords/policy.ts'
import { needsCode } from '../users/factors.ts'
import { type AuthResult, authResult } from './auth-result.ts'
import type { AccountDeps } from './deps.ts'
import type { FactorChange } from './factor-changes.ts'
import type { Reauthentication } from './reauthentication.ts'
import { retryOnChange } from './retry.ts'
import type { SignIns } from './sign-ins.ts'

type Deps = AccountDeps & { readonly signIns: SignIns; readonly reauthentication: Reauthentication }

export interface PasswordChange {
  readonly currentPassword?: string
  readonly newPassword: string
  readonly code?: string
}

export class PasswordChanges {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /**
   * Changes the password, ends all sessions of the user and opens a new one. The first password needs a proof of identity; another one needs
   * the current password, and of users with an authenticator app such a proof too.
   * @throws {ServiceError} `newPasswordIsEmail`, `newPasswordIsCurrent`, `newPasswordBreached`, `currentPasswordRequired`,
   * `wrongCurrentPassword`; `signInRequired` when the user was disabled or deleted, changed the password, or ended the session meanwhile;
   * and the errors of {@link Reauthentication.require}
   */
  async change(
    principal: Principal,
    change: PasswordChange,
    actor: Actor,
    client: SessionClient,
    signal?: AbortSignal,
  ): Promise<AuthResult> {
    const { id, email } = principal.cachedUser.user
    const { newPassword } = change
    if (isOwnEmail(newPassword, email)) throw new ServiceError('newPasswordIsEmail')
    const { accountStore, tokens, mails, limits, clock } = this.#deps
    await this.#requireProof(principal, change, actor.ip, signal)
    let newHash: string | undefined
    const done = await retryOnChange(async attempt => {
      const passwordHash = await this.#verifyCurrent(principal, change, attempt, actor.ip, signal)
      newHash ??= await this.#hash(newPassword, signal)
      const now = clock()
      // The operation adds what the session of the request has proved besides.
      const session = newSession(id, now, limits, { method: 'password', amr: ['pwd'] }, client)
      const event = newEvent('password.changed', actor, id, now)
      const acting = { session: actingSession(principal), passwordHash }
      const changed = await accountStore.changePassword(session, acting, newHash, event)
      // Possibly by a simultaneous sign-in that replaced the hash by a stronger one of the same password.
      if (changed === 'passwordChanged') return undefined
      if (typeof changed === 'string') throw new ServiceError('signInRequired')
      return { changed, session }
    })
    if (done === undefined) throw new ServiceError('signInRequired')
    mails.send('passwordChanged', done.changed, { isFirstConfirmation: false })
    return authResult(tokens, done.changed, done.session)
  }

  /**
   * Removes the password of a user who has another way to sign in. The caller has required a proof of identity.
   * @throws {ServiceError} `passwordNotFound`, `lastSignInMethod`, `signInRequired`
   */
  async remove(owner: SessionOwner, { endsOthers, actor }: FactorChange): Promise<void> {
    const { accountStore, signIns, mails, clock } = this.#deps
    const { user } = owner.cachedUser
    const event = newEvent('password.removed', actor, user.id, clock())
    const change = { session: actingSession(owner), endsOthers }
    const outcome = await accountStore.removePassword(signIns.knownMethods, change, event)
    if (outcome === 'passwordNotFound' || outcome === 'lastSignInMethod') throw new ServiceError(outcome)
    if (outcome !== 'done') throw new ServiceError('signInRequired')
    mails.send('passwordRemoved', user)
  }

  /** The current password is the proof of users without an authenticator app. */
  async #requireProof(
    principal: Principal,
    { code }: PasswordChange,
    ip: string | null,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { user } = principal.cachedUser
    if (user.hasPassword && !needsCode(user)) return
    const proof = code === undefined ? null : { password: undefined, code, ip, signal }
    await this.#deps.reauthentication.require(principal, proof)
  }

  /** @returns the current hash; `null` for a user without a password. */
  async #verifyCurrent(
    { cachedUser }: Principal,
    { currentPassword, newPassword }: PasswordChange,
    attempt: number,
    ip: string | null,
    signal: AbortSignal | undefined,
  ): Promise<string | null> {
    if (!cachedUser.user.hasPassword) {
      if (currentPassword !== undefined) throw new ServiceError('wrongCurrentPassword')
      return null
    }
    if (currentPassword === undefined) throw new ServiceError('currentPasswordRequired')
    const { reauthentication } = this.#deps
    const hash = await reauthentication.verifyPassword(cachedUser.user, currentPassword, ip, signal)
    // A changed password has ended every session, this one too.
    if (hash === undefined) throw new ServiceError(attempt === 1 ? 'wrongCurrentPassword' : 'signInRequired')
    if (canonicalPassword(newPassword) === canonicalPassword(currentPassword))
      throw new ServiceError('newPasswordIsCurrent')
    return hash
  }

  async #hash(newPassword: string, signal: AbortSignal | undefined): Promise<string> {
    const { breachedPasswords, hasher } = this.#deps
    await breachedPasswords.refuse(newPassword, 'newPasswordBreached', signal)
    return hasher.hash(newPassword, signal)
  }
}
