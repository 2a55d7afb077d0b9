/** Finishes sign-ins: the only code that opens a session for a user whom a sign-in method has verified. */

import { ServiceError } from '#base/errors'
import { type Actor, type AuditEvent, actingUser, newEvent } from '../audit-log/event.ts'
import { newSession, type Session, type SessionClient } from '../auth/session.ts'
import type { KnownMethods, OwnFactorChange, SignedIn, SignInRow } from '../store/store.ts'
import type { User } from '../users/user.ts'
import { type AuthResult, authResult } from './auth-result.ts'
import type { AccountDeps } from './deps.ts'
import { Outcomes } from './outcomes.ts'
import { type ActingKey, requireScopesOf } from './protected-role.ts'
import { retryOnChange } from './retry.ts'
import { PresentedCode } from './second-factor.ts'
import { amrWithCode, amrWithSecondFactor, type SignInMethod, type SignInRows } from './sign-in-methods.ts'

/** What a method has verified. The store compares it with the user again, in the transaction that opens the session. */
export interface VerifiedSignIn {
  readonly user: User
  /** The verified hash of the password, for a method that needs nothing else. */
  readonly passwordHash?: string
  /** What the sign-in uses up in its transaction: one of the feature's `signInProofs`, and its arguments after the event. */
  readonly proof?: readonly [name: string, ...args: readonly unknown[]]
  /** A `SignInProof` that adds something, such as another way to sign in, after the account was emptied. Refused, `verify` runs again. */
  readonly addition?: readonly [name: string, ...args: readonly unknown[]]
  /** For a method that proves the mailbox only sometimes, see `SignInMethod.provesMailbox`. */
  readonly provesMailbox?: boolean
  /** Whether this sign-in counts as two factors, for a method that otherwise needs a code. */
  readonly isMultiFactor?: boolean
  /** The hash of a new password, which ends all other sessions. Called after the code of the second factor was verified. */
  readonly newHash?: () => Promise<string>
  /** The type of the event, if it is not `user.signed-in`. */
  readonly event?: 'password.reset'
  /** Further details of the event, which the method declares. */
  readonly details?: Readonly<Record<string, string>>
}

export interface NewAccountSignIn {
  readonly newUser: User
  readonly isMultiFactor?: boolean
  /** Adds the account with its first session. @returns false if something unique is taken by now: `verify` is called again. */
  open(session: Session): Promise<boolean>
}

export interface SignInAttempt {
  readonly client: SessionClient
  readonly code?: string | undefined
  /** Called again, at most twice, when the user has changed meanwhile. @throws {ServiceError} the method's rejection, among others. */
  verify(): Promise<VerifiedSignIn | NewAccountSignIn>
}

export interface NamedSignInMethod extends Omit<SignInMethod, 'isEnabled' | 'rows'> {
  readonly name: string
  readonly feature: string | null
  readonly isEnabled: boolean
  /** `null`: every row of its tables signs in. */
  readonly rows: SignInRows | null
}

type Deps = AccountDeps & { readonly methods: readonly NamedSignInMethod[] }

type KnownMethod = NamedSignInMethod & { readonly outcomes: Outcomes }

type UsedMethod = Pick<KnownMethod, 'feature' | 'rejection' | 'needsSecondFactor'> & {
  readonly provesMailbox: boolean
}

export class SignIns {
  readonly #deps: Deps
  readonly #methods: ReadonlyMap<string, KnownMethod>

  constructor(deps: Deps) {
    this.#deps = deps
    this.#methods = new Map(
      deps.methods.map(method => [
        method.name,
        { ...method, outcomes: Outcomes.ofSignIns(method.rejection) },
      ]),
    )
  }

  get #enabled(): readonly KnownMethod[] {
    return [...this.#methods.values()].filter(({ isEnabled }) => isEnabled)
  }

  get outcomes(): Readonly<Record<string, Outcomes>> {
    return Object.fromEntries(this.#enabled.map(({ name, outcomes }) => [name, outcomes]))
  }

  has(method: string): boolean {
    return this.#methods.get(method)?.isEnabled ?? false
  }

  /** Counts a sign-in that is rejected before its body is read. @returns the same; `null` if it is not rejected. */
  countRefusal(method: string, refusal: ServiceError | null): ServiceError | null {
    return this.#method(method).outcomes.countRefusal(refusal)
  }

  /** The methods with which every user can sign in, by mail. */
  get mailedMethods(): readonly string[] {
    const mailed = this.#enabled.filter(({ provesMailbox, setsPassword }) => provesMailbox && !setsPassword)
    return mailed.map(({ name }) => name)
  }

  get knownMethods(): KnownMethods {
    return {
      methods: [...this.#methods.values()].map(({ name, amr, isEnabled, rows }) => ({
        name,
        amr,
        isEnabled,
        rows,
      })),
      hasMailed: this.mailedMethods.length > 0,
    }
  }

  /**
   * Removes one of the user's ways to sign in, a row of a feature. The caller has required a proof of identity.
   * @param change `null` if an administrator removes it. @throws {ServiceError} `lastSignInMethod`, `signInRequired`
   */
  async remove(
    row: SignInRow,
    change: OwnFactorChange | null,
    event: AuditEvent,
  ): Promise<'removed' | 'notFound'> {
    const { accountStore } = this.#deps
    const outcome = await accountStore.removeSignInRow(row, this.knownMethods, change, event)
    if (outcome === 'done') return 'removed'
    if (outcome === 'notFound' || (outcome === 'userNotFound' && change === null)) return 'notFound'
    throw new ServiceError(outcome === 'lastSignInMethod' ? outcome : 'signInRequired')
  }

  /**
   * Removes authenticator app, recovery codes and passkeys of a user who has lost them. Sessions stay, but need a new proof of identity.
   * @throws {ServiceError} `userNotFound`, `scopeRequired`
   */
  async removeFactors(userId: string, actor: Actor, key: ActingKey): Promise<void> {
    const { users, mails, protectedRole, clock } = this.#deps
    const user = await users.find(userId)
    if (user === undefined) throw new ServiceError('userNotFound')
    requireScopesOf(protectedRole, user, key)
    const event = newEvent('factors.removed', actor, userId, clock())
    const outcome = await users.removeFactors(event, this.knownMethods.methods)
    if (outcome === 'userNotFound') throw new ServiceError(outcome)
    if (outcome === 'removed') mails.send('factorsRemoved', user)
  }

  /**
   * Opens a session for a user whom the method verifies.
   * @throws {ServiceError} `routeNotFound` if the method is switched off; the method's rejection; for a verified user `accountDisabled`,
   * `emailNotVerified`, `secondFactorRequired`, `wrongSecondFactor`, `codesUnavailable`, `tooManyRequests`; what `verify` throws
   */
  complete(name: string, attempt: SignInAttempt): Promise<AuthResult> {
    const method = this.#method(name)
    return method.outcomes.count(async () => {
      const code = new PresentedCode(this.#deps.secondFactor, attempt.code, attempt.client.ip)
      const result = await retryOnChange(() => this.#tryToComplete(method, code, attempt))
      if (result === undefined) throw new ServiceError(method.rejection)
      return result
    })
  }

  /** Opens an account with its first session. @returns `undefined` if `open` returns false. @throws {ServiceError} `emailNotVerified` */
  async openAccount(
    name: string,
    account: Pick<NewAccountSignIn, 'newUser' | 'open'>,
    client: SessionClient,
  ): Promise<AuthResult | undefined> {
    return this.#openAccount(name, this.#method(name).amr, account, client)
  }

  #method(name: string): KnownMethod {
    const method = this.#methods.get(name)
    if (method === undefined) throw new Error(`No feature declares the sign-in method ${name}`)
    if (!method.isEnabled) throw new ServiceError('routeNotFound')
    return method
  }

  async #tryToComplete(
    method: KnownMethod,
    code: PresentedCode,
    { client, verify }: SignInAttempt,
  ): Promise<AuthResult | undefined> {
    const { tokens, mails, limits, requireEmailVerification, clock } = this.#deps
    const verified = await verify()
    const amr = verified.isMultiFactor ? amrWithSecondFactor(method.amr) : method.amr
    if ('newUser' in verified) return this.#openAccount(method.name, amr, verified, client)
    const { user, event: type = 'user.signed-in', details } = verified
    const { name } = method
    const provesMailbox = verified.provesMailbox ?? method.provesMailbox ?? false
    const needsSecondFactor = method.needsSecondFactor && !verified.isMultiFactor
    if (user.disabled) throw new ServiceError('accountDisabled')
    if (requireEmailVerification && !user.emailVerified && !provesMailbox)
      throw new ServiceError('emailNotVerified')
    // The factor of an account that was never confirmed may be a stranger's: it is removed.
    const isEmptied = provesMailbox && !user.emailVerified
    const hasCode = needsSecondFactor && !isEmptied && (await code.require(user))
    const now = clock()
    const authentication = { method: name, amr: hasCode ? amrWithCode(amr) : amr }
    const session = newSession(user.id, now, limits, authentication, client)
    const actor = actingUser(user.id, client.ip)
    const event =
      type === 'user.signed-in'
        ? newEvent(type, actor, user.id, now, { session: session.id, method: name, ...details })
        : newEvent(type, actor, user.id, now)
    const signedIn = await this.#open(
      { ...method, provesMailbox, needsSecondFactor },
      verified,
      session,
      event,
    )
    if (signedIn === undefined) return undefined
    if (signedIn.removed.length > 0) mails.send('accessRemoved', signedIn.user, { removed: signedIn.removed })
    return authResult(tokens, signedIn.user, session)
  }

  async #openAccount(
    method: string,
    amr: readonly string[],
    { newUser: user, open }: Pick<NewAccountSignIn, 'newUser' | 'open'>,
    client: SessionClient,
  ): Promise<AuthResult | undefined> {
    const { tokens, limits, requireEmailVerification } = this.#deps
    if (requireEmailVerification && !user.emailVerified) throw new ServiceError('emailNotVerified')
    const session = newSession(user.id, user.createdAt, limits, { method, amr }, client)
    return (await open(session)) ? authResult(tokens, user, session) : undefined
  }

  /** @returns `undefined` when the user has changed meanwhile. @throws {ServiceError} the rejection, `accountDisabled` */
  async #open(
    { feature, rejection, provesMailbox, needsSecondFactor }: UsedMethod,
    { user, passwordHash, proof, addition, newHash }: VerifiedSignIn,
    session: Session,
    event: AuditEvent,
  ): Promise<SignedIn | undefined> {
    const { sessions, accountStore } = this.#deps
    const { email, emailVerified, factors } = user
    if (proof === undefined) {
      if (passwordHash === undefined) throw new Error('A sign-in needs a verified password or a proof')
      const outcome = await sessions.open(session, { passwordHash, factors }, event)
      if (outcome === 'accountDisabled') throw new ServiceError(outcome)
      return outcome === 'opened' ? { user, removed: [] } : undefined
    }
    const named = ([name, ...args]: NonNullable<VerifiedSignIn['proof']>) => ({
      name: feature === null ? name : `${feature}.${name}`,
      args,
    })
    const signIn = {
      proof: named(proof),
      addition: addition === undefined ? null : named(addition),
      email: provesMailbox ? email : null,
      emailVerified,
      factors: needsSecondFactor ? factors : null,
      newHash: newHash === undefined ? null : await newHash(),
    }
    const outcome = await accountStore.signIn(signIn, session, event)
    if (outcome === 'userChanged') return undefined
    if (outcome === 'accountDisabled') throw new ServiceError(outcome)
    if (typeof outcome === 'string') throw new ServiceError(rejection)
    return outcome
  }
}
