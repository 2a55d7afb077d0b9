/** Finishes sign-ins: the only code that opens a session for a user whom a sign-in method has verified. */
import { type AuditEvent, actingUser, newEvent } from '../audit-log/event.ts'
import type { AccessTokens } from '../auth/access-tokens.ts'
import { newSession, type Session, type SessionClient, type SessionLimits } from '../auth/session.ts'
import { ServiceError } from '../errors.ts'
import type {
  AccountStore,
  KnownMethods,
  OwnFactorChange,
  SessionStore,
  SignedIn,
  SignInRow,
} from '../storage/stores.ts'
import type { User } from '../users/user.ts'
import { type AuthResult, authResult } from './auth-result.ts'
import type { Mails } from './mails.ts'
import { Outcomes } from './outcomes.ts'
import { retryOnChange } from './retry.ts'
import { PresentedCode, type SecondFactor } from './second-factor.ts'
import { amrWithCode, type SignInMethod } from './sign-in-methods.ts'

/** What a method has verified. The store compares it with the user again, in the transaction that opens the session. */
export interface VerifiedSignIn {
  /** As read. */
  readonly user: User
  /** The verified hash of the password, for a method that needs nothing else. */
  readonly passwordHash?: string
  /** What the sign-in uses up in its transaction: the name of one of the feature's `signInProofs`, and its arguments after the event. */
  readonly proof?: readonly [name: string, ...args: readonly unknown[]]
  /** The hash of a new password, which ends all other sessions. Called after the code of the second factor was verified. */
  readonly newHash?: () => Promise<string>
  /** The type of the event, if it is not `user.signed-in`. */
  readonly event?: 'password.reset'
  /** As the method declares them. */
  readonly details?: Readonly<Record<string, string>>
}

export interface SignInAttempt {
  readonly client: SessionClient
  /** The code of an authenticator app, or a recovery code. */
  readonly code?: string | undefined
  /**
   * Verifies who signs in. Called again, at most twice, when the user has changed meanwhile.
   * @throws {ServiceError} the method's rejection, among others.
   */
  verify(): Promise<VerifiedSignIn>
}

/** A method with its name, and with the name of its feature. */
export interface NamedSignInMethod extends Omit<SignInMethod, 'isEnabled'> {
  readonly name: string
  readonly feature: string | null
  readonly isEnabled: boolean
}

export interface SignInsDeps {
  readonly methods: readonly NamedSignInMethod[]
  readonly sessions: Pick<SessionStore, 'open'>
  readonly accountStore: Pick<AccountStore, 'signIn' | 'removeSignInRow'>
  readonly tokens: AccessTokens
  readonly secondFactor: SecondFactor
  readonly mails: Mails
  readonly limits: SessionLimits
  /** Whether signing in requires a verified e-mail. */
  readonly requireEmailVerification: boolean
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

type KnownMethod = NamedSignInMethod & { readonly outcomes: Outcomes }

export class SignIns {
  readonly #deps: SignInsDeps
  readonly #methods: ReadonlyMap<string, KnownMethod>

  constructor(deps: SignInsDeps) {
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

  /** The outcomes of sign-ins by method. */
  get outcomes(): Readonly<Record<string, Outcomes>> {
    return Object.fromEntries(this.#enabled.map(({ name, outcomes }) => [name, outcomes]))
  }

  /** Whether there is the method, and it is not switched off. */
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

  /** The methods of the service, among which one that is enabled must stay when another is removed. */
  get knownMethods(): KnownMethods {
    return {
      methods: [...this.#methods.values()].map(({ name, amr, isEnabled }) => ({ name, amr, isEnabled })),
      hasMailed: this.mailedMethods.length > 0,
    }
  }

  /**
   * Removes one of the user's ways to sign in, which is a row of a feature. The caller has required a proof of identity.
   * @returns `notFound` if the user has no such row.
   * @throws {ServiceError} `lastSignInMethod`, `signInRequired`
   */
  async remove(row: SignInRow, change: OwnFactorChange, event: AuditEvent): Promise<'removed' | 'notFound'> {
    const { accountStore } = this.#deps
    const outcome = await accountStore.removeSignInRow(row, this.knownMethods, change, event)
    if (outcome === 'done') return 'removed'
    if (outcome === 'notFound') return outcome
    throw new ServiceError(outcome === 'lastSignInMethod' ? outcome : 'signInRequired')
  }

  /**
   * Opens a session for a user whom the method verifies.
   * @throws {ServiceError} `routeNotFound` if the method is switched off; the method's rejection; only for a verified user `accountDisabled`, `emailNotVerified`, `secondFactorRequired`
   * and `wrongSecondFactor`; `codesUnavailable`, `tooManyRequests`, `storeUnavailable`; and what `verify` throws.
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

  /** The first session of a user whose account the caller opens with it, by a method of the core. */
  firstSession(name: string, { id, createdAt }: User, client: SessionClient): Session {
    const { amr } = this.#method(name)
    return newSession(id, createdAt, this.#deps.limits, { method: name, amr }, client)
  }

  #method(name: string): KnownMethod {
    const method = this.#methods.get(name)
    if (method === undefined) throw new Error(`No feature declares the sign-in method ${name}`)
    if (!method.isEnabled) throw new ServiceError('routeNotFound')
    return method
  }

  /** @returns `undefined` when the user has changed meanwhile. */
  async #tryToComplete(
    method: KnownMethod,
    code: PresentedCode,
    { client, verify }: SignInAttempt,
  ): Promise<AuthResult | undefined> {
    const { tokens, mails, limits, requireEmailVerification, clock } = this.#deps
    const verified = await verify()
    const { user, event: type = 'user.signed-in', details } = verified
    const { name, amr, provesMailbox = false, needsSecondFactor } = method
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
    const signedIn = await this.#open(method, verified, session, event)
    if (signedIn === undefined) return undefined
    if (signedIn.removed.length > 0) mails.send('accessRemoved', signedIn.user, { removed: signedIn.removed })
    return authResult(tokens, signedIn.user, session)
  }

  /** @returns `undefined` when the user has changed meanwhile. @throws {ServiceError} the rejection, `accountDisabled` */
  async #open(
    { feature, rejection, provesMailbox, needsSecondFactor }: KnownMethod,
    { user, passwordHash, proof, newHash }: VerifiedSignIn,
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
    const [name, ...args] = proof
    const signIn = {
      proof: { name: feature === null ? name : `${feature}.${name}`, args },
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
