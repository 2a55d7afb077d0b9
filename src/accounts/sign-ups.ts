/** Sign-up. With REQUIRE_EMAIL_VERIFICATION, it opens no session, and does not reveal whether the e-mail has an account. */
import { actingUser, newEvent } from '../audit-log/event.ts'
import type { AccessTokens } from '../auth/access-tokens.ts'
import { newSession, type Session, type SessionClient, type SessionLimits } from '../auth/session.ts'
import { KeyedMutex } from '../concurrency/keyed-mutex.ts'
import { ServiceError } from '../errors.ts'
import type { BreachedPasswords } from '../passwords/breached-passwords.ts'
import type { PasswordHasher } from '../passwords/hasher.ts'
import type { User } from '../users/user.ts'
import type { UserStore } from '../users/user-store.ts'
import { newUser } from './account-creation.ts'
import type { AccountStore } from './account-store.ts'
import { type AuthResult, authResult } from './auth-result.ts'
import { newEmailToken } from './email-token.ts'
import type { ExistingAccountNotice } from './existing-account-notice.ts'
import type { Mails } from './mails.ts'
import { Outcomes } from './outcomes.ts'
import { retryOnChange } from './retry.ts'

export interface SignUp {
  /** In canonical form. */
  readonly email: string
  readonly password: string
  readonly firstName?: string | null
  readonly lastName?: string | null
}

export interface SignUpsDeps {
  readonly users: UserStore
  readonly accountStore: AccountStore
  readonly tokens: AccessTokens
  readonly hasher: PasswordHasher
  readonly breachedPasswords: Pick<BreachedPasswords, 'refuse'>
  readonly limits: SessionLimits
  readonly mails: Mails
  readonly existingAccountNotice: ExistingAccountNotice
  /** Whether signing in requires a verified e-mail. */
  readonly requireEmailVerification: boolean
  readonly clock: () => number
}

export class SignUps {
  readonly #deps: SignUpsDeps
  readonly #openings = new KeyedMutex()
  readonly outcomes = new Outcomes('email_taken', 'overloaded', 'cancelled')

  constructor(deps: SignUpsDeps) {
    this.#deps = deps
  }

  /** For a sign-up whose body has not been read. @returns the error that it gets if its hash would be rejected; `null` if not. */
  refusal(): ServiceError | null {
    return this.outcomes.countRefusal(this.#deps.hasher.refusal())
  }

  /**
   * Adds an account and mails a link that verifies its e-mail.
   * @param signal aborted when the client disconnects. It cancels the sign-up until hashing starts.
   * @returns the first session; `null` if signing in requires a verified e-mail.
   * @throws {ServiceError} `passwordBreached`, `emailTaken` (unless requireEmailVerification), `overloaded`, `clientClosedRequest`,
   * `draining`, `storeUnavailable`
   */
  async signUp(input: SignUp, client: SessionClient, signal?: AbortSignal): Promise<AuthResult | null> {
    // Before the e-mail is looked up, so that its time tells nothing of the account.
    await this.#deps.breachedPasswords.refuse(input.password, 'passwordBreached', signal)
    return this.outcomes.count(async () => {
      if (!this.#deps.requireEmailVerification) return this.#open(input, client, signal)
      await this.#register(input, client.ip, signal)
      return null
    })
  }

  /**
   * Simultaneous sign-ups with one e-mail run one after the other, so that a thousand of them cost one hash. Uniqueness does
   * not depend on it: the store has a constraint.
   */
  async #open(input: SignUp, client: SessionClient, signal: AbortSignal | undefined): Promise<AuthResult> {
    const { tokens, hasher, limits, clock } = this.#deps
    await this.#refuseTaken(input.email)
    return this.#openings.runExclusive(input.email, async hasWaited => {
      if (hasWaited) await this.#refuseTaken(input.email)
      const passwordHash = await hasher.hash(input.password, signal)
      const user = newUser(input, clock())
      const session = newSession(user.id, user.createdAt, limits, client)
      if (!(await this.#add(user, passwordHash, client.ip, session))) throw new ServiceError('emailTaken')
      return authResult(tokens, user, session)
    })
  }

  /** A free and a taken e-mail both cost one hash and one write; only the mail differs. */
  async #register(input: SignUp, ip: string | null, signal: AbortSignal | undefined): Promise<void> {
    const { hasher, existingAccountNotice, clock } = this.#deps
    const passwordHash = await hasher.hash(input.password, signal)
    // Neither succeeds where the account is deleted between the two.
    const isDone = await retryOnChange(
      async () =>
        (await this.#add(newUser(input, clock()), passwordHash, ip)) ||
        (await existingAccountNotice.send(input.email, ip)) ||
        undefined,
    )
    if (!isDone) throw new ServiceError('overloaded')
  }

  /** @returns false when the e-mail is taken. */
  async #add(user: User, passwordHash: string, ip: string | null, session?: Session): Promise<boolean> {
    const { accountStore, mails } = this.#deps
    const { id, email, createdAt } = user
    const { token, stored } = newEmailToken('verification', id, email, createdAt)
    const event = newEvent('user.signed-up', actingUser(id, ip), id, createdAt)
    const extras = { emailToken: stored, ...(session && { session }) }
    const isAdded = await accountStore.addUser({ ...user, passwordHash }, event, extras)
    if (isAdded) mails.send('verification', email, { token })
    return isAdded
  }

  async #refuseTaken(email: string): Promise<void> {
    if ((await this.#deps.users.findByEmail(email)) !== undefined) throw new ServiceError('emailTaken')
  }
}
