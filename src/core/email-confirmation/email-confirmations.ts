/** Confirming an e-mail needs the mailbox, which the mailed token proves, and the account: two people never share one. */

import { ServiceError } from '#base/errors'
import type { AuthResult } from '../accounts/auth-result.ts'
import type { AccountDeps } from '../accounts/deps.ts'
import { confirmsCurrentEmail, digestOf, type EmailToken, isTokenFor } from '../accounts/email-token.ts'
import { retryOnChange } from '../accounts/retry.ts'
import { PresentedCode } from '../accounts/second-factor.ts'
import { actingUser, anonymous, newEvent } from '../audit-log/event.ts'
import type { SessionClient } from '../auth/session.ts'
import { emailSubject } from '../rate-limits/login-throttle.ts'
import type { AccountProof } from '../store/store.ts'
import { needsCode } from '../users/factors.ts'
import type { User } from '../users/user.ts'
import type { PendingSignUps } from './pending-sign-ups.ts'
import type { PendingSignUp } from './stored-pending-sign-ups.ts'

type Deps = AccountDeps & { readonly pendingSignUps: PendingSignUps }

export interface PresentedSession {
  readonly id: string
  readonly userId: string
  readonly isImpersonated: boolean
}

export interface PresentedProof {
  readonly session: PresentedSession | null
  readonly password: string | undefined
  readonly code: string | undefined
}

export type ConfirmationSubject = 'account' | 'emailChange' | 'signUp'

export interface PendingConfirmation {
  readonly subject: ConfirmationSubject
  readonly email: string
  /** `null` without an account yet. */
  readonly userId: string | null
  /** Whether the password alone does not prove the account. */
  readonly needsCode: boolean
}

/** RFC 9470 §3. */
const CHALLENGE = 'Bearer error="insufficient_user_authentication"'

const proofRequired = () =>
  new ServiceError('accountProofRequired', { headers: { 'www-authenticate': CHALLENGE } })

type Found = { readonly token: EmailToken; readonly user: User } | { readonly signUp: PendingSignUp }

export class EmailConfirmations {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Reads a token without using it. @throws {ServiceError} `badEmailToken`, `emailTaken` */
  async check(token: string): Promise<PendingConfirmation> {
    const found = await this.#find(token)
    if ('signUp' in found) {
      const { email } = found.signUp
      await this.#assertFree(email)
      return { subject: 'signUp', email, userId: null, needsCode: false }
    }
    const { email } = found.token
    const { user } = found
    const owner = { email, userId: user.id, needsCode: needsCode(user) }
    if (confirmsCurrentEmail(found.token)) {
      // The user changed the e-mail after the mail was sent.
      if (user.email !== email) throw new ServiceError('badEmailToken')
      return { subject: 'account', ...owner }
    }
    if (user.email !== email) await this.#assertFree(email)
    return { subject: 'emailChange', ...owner }
  }

  /**
   * Uses a token: its address becomes the user's e-mail, as verified. That of a sign-up opens the account, with a session.
   * @throws {ServiceError} `badEmailToken`, `emailTaken`; `accountProofRequired`, `impersonated`, `wrongPassword`, `secondFactorRequired` and
   * `wrongSecondFactor` leave the token valid; `codesUnavailable`, `tooManyRequests`
   */
  async confirm(
    token: string,
    proof: PresentedProof,
    client: SessionClient,
    signal?: AbortSignal,
  ): Promise<User | AuthResult> {
    const found = await this.#find(token)
    if ('token' in found) return this.#confirmEmail(found.token, found.user, proof, client.ip, signal)
    if (proof.password === undefined) throw proofRequired()
    return this.#deps.pendingSignUps.open(found.signUp, proof.password, client, signal)
  }

  /**
   * Uses a token of somebody who does not know the account: ends the change of the e-mail, or removes the sign-up or the unconfirmed account.
   * @returns what was removed. @throws {ServiceError} `badEmailToken`
   */
  async reject(token: string, ip: string | null): Promise<ConfirmationSubject> {
    const { emailTokens, pendingSignUps, finishRemoval, clock } = this.#deps
    const found = await this.#find(token)
    if ('signUp' in found) {
      await pendingSignUps.remove(found.signUp)
      return 'signUp'
    }
    const type = confirmsCurrentEmail(found.token) ? 'user.deleted' : 'email.change-rejected'
    const event = newEvent(type, anonymous(ip), found.user.id, clock())
    const outcome = await emailTokens.rejectEmail(found.token, event)
    if (outcome === 'notFound') throw new ServiceError('badEmailToken')
    if (outcome === 'changeEnded') return 'emailChange'
    finishRemoval(outcome)
    return 'account'
  }

  async #find(token: string): Promise<Found> {
    const { users, emailTokens, pendingSignUps, clock } = this.#deps
    const digest = digestOf(token)
    const stored = await emailTokens.find(digest, clock())
    if (stored === undefined) {
      const signUp = await pendingSignUps.find(digest)
      if (signUp !== undefined) return { signUp }
    }
    if (!isTokenFor('verifyEmail', stored)) throw new ServiceError('badEmailToken')
    const user = await users.find(stored.userId)
    if (user === undefined || user.disabled) throw new ServiceError('badEmailToken')
    return { token: stored, user }
  }

  async #assertFree(email: string): Promise<void> {
    if ((await this.#deps.users.findId(email)) !== undefined) throw new ServiceError('emailTaken')
  }

  async #confirmEmail(
    token: EmailToken,
    user: User,
    presented: PresentedProof,
    ip: string | null,
    signal: AbortSignal | undefined,
  ): Promise<User> {
    const { emailTokens, mails, secondFactor, clock } = this.#deps
    const code = new PresentedCode(secondFactor, presented.code, ip)
    const confirmed = await retryOnChange(async () => {
      const proof = await this.#prove(user, presented, code, ip, signal)
      const type = confirmsCurrentEmail(token) ? 'email.verified' : 'email.changed'
      const event = newEvent(type, actingUser(user.id, ip), user.id, clock())
      const outcome = await emailTokens.confirmEmail(token, event, proof)
      return outcome === 'notProved' ? undefined : outcome
    })
    if (confirmed === undefined) throw proofRequired()
    if (confirmed === 'emailTaken') throw new ServiceError('emailTaken')
    if (confirmed === 'notFound') throw new ServiceError('badEmailToken')
    if (user.email !== confirmed.email) mails.send('emailChanged', user, { newEmail: confirmed.email })
    return confirmed
  }

  /** The password is throttled: strangers have tokens for their own addresses. */
  async #prove(
    user: User,
    { session, password }: PresentedProof,
    code: PresentedCode,
    ip: string | null,
    signal: AbortSignal | undefined,
  ): Promise<AccountProof> {
    const { users, hasher, loginThrottle } = this.#deps
    if (session?.userId === user.id) {
      if (session.isImpersonated) throw new ServiceError('impersonated')
      return { sessionId: session.id }
    }
    if (password === undefined) throw proofRequired()
    const found = await loginThrottle.check(emailSubject(user.email, ip), async () => {
      const account = await users.findByEmail(user.email)
      // Another e-mail meanwhile has ended every link.
      if (account?.user.id !== user.id) throw new ServiceError('badEmailToken')
      const { passwordHash } = account
      const isRight = await hasher.verify(password, passwordHash, signal)
      return isRight && passwordHash !== null ? { ...account, passwordHash } : undefined
    })
    if (found === undefined) throw new ServiceError('wrongPassword')
    await code.require(found.user)
    return { passwordHash: found.passwordHash, factors: found.user.factors }
  }
}
