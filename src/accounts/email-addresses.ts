/** Verifying and changing e-mail addresses, by links that are mailed to them. */
import { type Actor, actingUser, newEvent } from '../audit-log/event.ts'
import type { SessionOwner } from '../auth/principal.ts'
import type { DeferredWork } from '../concurrency/deferred-work.ts'
import { ServiceError } from '../errors.ts'
import type { User } from '../users/user.ts'
import type { UserStore, VerifiedSession } from '../users/user-store.ts'
import { confirmsCurrentEmail, digestOf, isTokenFor, MAIL_WINDOW, newEmailToken } from './email-token.ts'
import type { EmailTokenStore } from './email-token-store.ts'
import type { ExistingAccountNotice } from './existing-account-notice.ts'
import type { Mails } from './mails.ts'
import type { Reauthentication } from './reauthentication.ts'

export interface EmailAddressesDeps {
  readonly users: UserStore
  readonly emailTokens: EmailTokenStore
  readonly mails: Mails
  readonly deferred: DeferredWork
  readonly reauthentication: Reauthentication
  readonly existingAccountNotice: ExistingAccountNotice
  /** Then no response reveals which addresses have accounts. */
  readonly requireEmailVerification: boolean
  readonly clock: () => number
}

export interface EmailChange {
  /** In canonical form. */
  readonly email: string
  readonly password: string
}

const tooManyMails = (): ServiceError =>
  new ServiceError('tooManyRequests', { headers: { 'retry-after': String(MAIL_WINDOW / 1_000) } })

export class EmailAddresses {
  readonly #deps: EmailAddressesDeps

  constructor(deps: EmailAddressesDeps) {
    this.#deps = deps
  }

  /**
   * Mails a link to the new address, and a notice to the current one.
   * @throws {ServiceError} `wrongPassword`, `emailIsCurrent`, `emailTaken` (unless requireEmailVerification),
   * `tooManyRequests`, and as {@link Reauthentication.withPassword}
   */
  async requestChange(
    owner: SessionOwner,
    change: EmailChange,
    actor: Actor,
    signal?: AbortSignal,
  ): Promise<void> {
    const {
      users,
      emailTokens,
      mails,
      deferred,
      reauthentication,
      existingAccountNotice,
      requireEmailVerification,
      clock,
    } = this.#deps
    const { email, password } = change
    const { user } = owner.cachedUser
    const add = async (acting: VerifiedSession) => {
      if (email === user.email) throw new ServiceError('emailIsCurrent')
      const holder = await users.findByEmail(email)
      if (holder !== undefined && !requireEmailVerification) throw new ServiceError('emailTaken')
      const now = clock()
      const { token, stored } = newEmailToken('emailChange', user.id, email, now)
      const event = newEvent('email.change-requested', actor, user.id, now)
      const outcome = await emailTokens.add(stored, event, acting)
      return outcome === 'added' ? { token, isTaken: holder !== undefined } : outcome
    }
    const added = await reauthentication.withPassword(
      owner,
      { password, wrong: 'wrongPassword', ip: actor.ip, signal },
      add,
    )
    if (added === 'tooManyMails') throw tooManyMails()
    // Deferred, so that response times reveal nothing.
    if (added.isTaken) deferred.run(async () => void (await existingAccountNotice.send(email, actor.ip)))
    else mails.send('emailChange', email, { token: added.token })
    mails.send('emailChangeRequested', user.email, { newEmail: email })
  }

  /**
   * Mails another link for verification, unless the user's e-mail is verified.
   * @throws {ServiceError} `tooManyRequests`; `signInRequired` when the user was disabled or deleted, or the session ended meanwhile
   */
  async resendVerification({ cachedUser, credentialId }: SessionOwner, actor: Actor): Promise<void> {
    const { user } = cachedUser
    if (user.emailVerified) return
    const { emailTokens, mails, clock } = this.#deps
    const now = clock()
    const { token, stored } = newEmailToken('verification', user.id, user.email, now)
    const event = newEvent('email.verification-requested', actor, user.id, now)
    const outcome = await emailTokens.add(stored, event, { id: credentialId, passwordHash: null })
    if (outcome === 'tooManyMails') throw tooManyMails()
    if (outcome !== 'added') throw new ServiceError('signInRequired')
    mails.send('verification', user.email, { token })
  }

  /** Mails both addresses of a change by an administrator, which is stored. */
  announceChange(from: string, to: string): void {
    const { mails } = this.#deps
    mails.send('emailChanged', from, { newEmail: to })
    mails.send('emailAssigned', to)
  }

  /**
   * Checks a token as {@link verify} does, without using it.
   * @throws {ServiceError} `badEmailToken`, `emailTaken`
   */
  async check(token: string): Promise<void> {
    const { users, emailTokens, clock } = this.#deps
    const stored = await emailTokens.find(digestOf(token), clock())
    if (!isTokenFor('verifyEmail', stored)) throw new ServiceError('badEmailToken')
    const user = await users.find(stored.userId)
    if (user === undefined || user.disabled) throw new ServiceError('badEmailToken')
    if (user.email === stored.email) return
    // The user changed the e-mail after the mail was sent.
    if (confirmsCurrentEmail(stored)) throw new ServiceError('badEmailToken')
    if ((await users.findByEmail(stored.email)) !== undefined) throw new ServiceError('emailTaken')
  }

  /**
   * Uses a token: its address becomes the user's e-mail, as verified.
   * @param ip for the audit log. The client acts as the token's user, signed in or not.
   * @throws {ServiceError} `badEmailToken`, `emailTaken`
   */
  async verify(token: string, ip: string | null): Promise<User> {
    const { users, emailTokens, mails, clock } = this.#deps
    const now = clock()
    const stored = await emailTokens.find(digestOf(token), now)
    if (!isTokenFor('verifyEmail', stored)) throw new ServiceError('badEmailToken')
    const type = confirmsCurrentEmail(stored) ? 'email.verified' : 'email.changed'
    const before = await users.find(stored.userId)
    const event = newEvent(type, actingUser(stored.userId, ip), stored.userId, now)
    const user = await emailTokens.confirmEmail(stored, event)
    if (user === 'emailTaken') throw new ServiceError('emailTaken')
    if (before === undefined || user === undefined) throw new ServiceError('badEmailToken')
    if (before.email !== user.email) mails.send('emailChanged', before.email, { newEmail: user.email })
    return user
  }
}
