/** Sign-up. With REQUIRE_EMAIL_VERIFICATION it opens no account yet, and does not reveal whether the e-mail has one. */

import { KeyedMutex } from '#base/concurrency/keyed-mutex'
import { ServiceError } from '#base/errors'
import { actingUser, newEvent } from '../audit-log/event.ts'
import type { Session, SessionClient } from '../auth/session.ts'
import type { PendingSignUps } from '../email-confirmation/pending-sign-ups.ts'
import { newSignUpFields, type SignUpFields } from '../users/fields.ts'
import type { UserWithHash } from '../users/user.ts'
import { newUser } from './account-creation.ts'
import type { AuthResult } from './auth-result.ts'
import type { AccountDeps } from './deps.ts'
import { newEmailToken } from './email-token.ts'
import { Outcomes } from './outcomes.ts'
import type { SignIns } from './sign-ins.ts'

export interface SignUp extends Partial<SignUpFields> {
  /** In canonical form. */
  readonly email: string
  readonly password: string
  /** Where the page behind the mailed link leads back to. */
  readonly returnTo?: string | null
}

type Deps = AccountDeps & {
  readonly signIns: SignIns
  /** `null` unless an account exists only once its e-mail is confirmed. */
  readonly pendingSignUps: PendingSignUps | null
}

export class SignUps {
  readonly #deps: Deps
  readonly #openings = new KeyedMutex()
  readonly outcomes = new Outcomes(['email_taken', 'overloaded', 'cancelled'])

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** The error of a sign-up whose hash would be rejected, before its body is read; `null` if there is room. */
  refusal(): ServiceError | null {
    return this.outcomes.countRefusal(this.#deps.hasher.refusal())
  }

  /**
   * Adds an account, or with REQUIRE_EMAIL_VERIFICATION a pending sign-up, and mails a link that confirms its e-mail.
   * @returns the first session; `null` for a pending sign-up. @throws {ServiceError} `passwordBreached`, `emailTaken`, `overloaded`
   */
  async signUp(input: SignUp, client: SessionClient, signal?: AbortSignal): Promise<AuthResult | null> {
    // Before the e-mail is looked up, so that its time tells nothing of the account.
    await this.#deps.breachedPasswords.refuse(input.password, 'passwordBreached', signal)
    const { pendingSignUps, hasher } = this.#deps
    return this.outcomes.count(async () => {
      if (pendingSignUps === null) return this.#open(input, client, signal)
      const { email, password, returnTo = null } = input
      const passwordHash = await hasher.hash(password, signal)
      await pendingSignUps.add({ email, passwordHash, fields: newSignUpFields(input) }, client.ip, returnTo)
      return null
    })
  }

  /** One after the other for each e-mail, so that a thousand sign-ups cost one hash. The store has a unique constraint. */
  async #open(input: SignUp, client: SessionClient, signal: AbortSignal | undefined): Promise<AuthResult> {
    const { hasher, signIns, clock } = this.#deps
    await this.#refuseTaken(input.email)
    return this.#openings.runExclusive(input.email, async hasWaited => {
      if (hasWaited) await this.#refuseTaken(input.email)
      const passwordHash = await hasher.hash(input.password, signal)
      const user = newUser(input, passwordHash, clock())
      const open = (session: Session) => this.#add(user, client.ip, session, input.returnTo)
      const opened = await signIns.openAccount('password', { newUser: user, open }, client)
      if (opened === undefined) throw new ServiceError('emailTaken')
      return opened
    })
  }

  async #add(
    user: UserWithHash,
    ip: string | null,
    session: Session,
    returnTo: string | null | undefined,
  ): Promise<boolean> {
    const { accountStore, mails, returnTargets } = this.#deps
    const { id, email, createdAt } = user
    const { token, stored } = newEmailToken('verification', id, email, createdAt)
    const event = newEvent('user.signed-up', actingUser(id, ip), id, createdAt)
    const extras = { emailToken: stored, session }
    const isAdded = await accountStore.addUser(user, event, extras)
    if (!isAdded) return false
    await returnTargets.keep(token, returnTo, stored.expiresAt)
    mails.send('verification', user, { token })
    return true
  }

  async #refuseTaken(email: string): Promise<void> {
    if ((await this.#deps.users.findByEmail(email)) !== undefined) throw new ServiceError('emailTaken')
  }
}
