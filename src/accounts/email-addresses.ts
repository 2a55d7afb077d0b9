/** Whose an e-mail address is: shown by using a link that was mailed to it. */

import { type Actor, newEvent } from '../audit-log/event.ts'
import type { DeferredWork } from '../concurrency/deferred-work.ts'
import { ServiceError } from '../errors.ts'
import type { User } from '../users/user.ts'
import type { UserStore } from '../users/user-store.ts'
import { digestOf, type EmailTokenStore, isTokenFor, MAILED_WITHIN, newEmailToken } from './email-token.ts'
import type { ExistingAccountNotice } from './existing-account-notice.ts'
import type { Mails } from './mails.ts'
import type { Reauthentication } from './reauthentication.ts'

export interface EmailAddressesDeps {
  readonly users: UserStore
  readonly emailTokens: EmailTokenStore
  readonly mails: Mails
  readonly later: DeferredWork
  readonly reauthentication: Reauthentication
  readonly existingAccountNotice: ExistingAccountNotice
  /** Whether nobody may learn which addresses have accounts. */
  readonly requireEmailVerification: boolean
  readonly clock: () => number
}

export interface EmailChange {
  /** In canonical form. */
  readonly email: string
  readonly password: string
}

const tooManyMails = (): ServiceError =>
  new ServiceError('tooManyRequests', { headers: { 'retry-after': String(MAILED_WITHIN / 1_000) } })

export class EmailAddresses {
  readonly #parts: EmailAddressesDeps

  constructor(parts: EmailAddressesDeps) {
    this.#parts = parts
  }

  /**
   * Mails a link to an address that is to become the user's, and tells the one that it still is.
   * @throws {ServiceError} `wrongPassword`, `emailIsCurrent`, `emailTaken` (unless requireEmailVerification),
   * `tooManyRequests`, and as {@link Reauthentication.confirmed}
   */
  async requestChange(user: User, change: EmailChange, actor: Actor, signal?: AbortSignal): Promise<void> {
    const {
      users,
      emailTokens,
      mails,
      later,
      reauthentication,
      existingAccountNotice,
      requireEmailVerification,
      clock,
    } = this.#parts
    const { email, password } = change
    const add = async (verifiedHash: string) => {
      if (email === user.email) throw new ServiceError('emailIsCurrent')
      const holder = await users.findByEmail(email)
      if (holder !== undefined && !requireEmailVerification) throw new ServiceError('emailTaken')
      const now = clock()
      const { token, stored } = newEmailToken('emailChange', user.id, email, now)
      const event = newEvent('email.change-requested', actor, user.id, now)
      const outcome = await emailTokens.add(stored, event, verifiedHash)
      return outcome === 'added' ? { token, isTaken: holder !== undefined } : outcome
    }
    const added = await reauthentication.confirmed(
      user,
      { password, wrong: 'wrongPassword', ip: actor.ip, signal },
      add,
    )
    if (added === 'tooManyMails') throw tooManyMails()
    // Later, so that the time of the answer does not tell.
    if (added.isTaken) later.run(async () => void (await existingAccountNotice.send(email, actor.ip)))
    else mails.send('emailChange', email, { token: added.token })
    mails.send('emailChangeRequested', user.email, { newEmail: email })
  }

  /**
   * Mails the link that verifies the user's address, if it is not verified.
   * @throws {ServiceError} `tooManyRequests`; `signInRequired` when the user was disabled or removed in the meantime
   */
  async resendVerification(user: User, actor: Actor): Promise<void> {
    if (user.emailVerified) return
    const { emailTokens, mails, clock } = this.#parts
    const now = clock()
    const { token, stored } = newEmailToken('verification', user.id, user.email, now)
    const event = newEvent('email.verification-requested', actor, user.id, now)
    const outcome = await emailTokens.add(stored, event, null)
    if (outcome === 'tooManyMails') throw tooManyMails()
    if (outcome !== 'added') throw new ServiceError('signInRequired')
    mails.send('verification', user.email, { token })
  }

  /**
   * What {@link verify} would say of a token now. It is not used up.
   * @throws {ServiceError} `badEmailToken`, `emailTaken`
   */
  async check(token: string): Promise<void> {
    const { users, emailTokens, clock } = this.#parts
    const stored = await emailTokens.find(digestOf(token), clock())
    if (!isTokenFor('verifyEmail', stored)) throw new ServiceError('badEmailToken')
    const user = await users.find(stored.userId)
    if (user === undefined || user.disabled) throw new ServiceError('badEmailToken')
    if (user.email === stored.email) return
    // An address that is the user's no longer is verified by nobody.
    if (stored.purpose === 'verification') throw new ServiceError('badEmailToken')
    if ((await users.findByEmail(stored.email)) !== undefined) throw new ServiceError('emailTaken')
  }

  /**
   * Uses a e-mail token: its address is the user's from now on, and verified.
   * @param ip where it comes from; who presents the token is the user, signed in or not.
   * @throws {ServiceError} `badEmailToken`, `emailTaken`
   */
  async verify(token: string, ip: string | null): Promise<User> {
    const { users, emailTokens, mails, clock } = this.#parts
    const now = clock()
    const stored = await emailTokens.find(digestOf(token), now)
    if (!isTokenFor('verifyEmail', stored)) throw new ServiceError('badEmailToken')
    const type = stored.purpose === 'verification' ? 'email.verified' : 'email.changed'
    const before = await users.find(stored.userId)
    const event = newEvent(type, { type: 'user', id: stored.userId, ip }, stored.userId, now)
    const user = await emailTokens.confirmEmail(stored, event)
    if (user === 'emailTaken') throw new ServiceError('emailTaken')
    if (before === undefined || user === undefined) throw new ServiceError('badEmailToken')
    if (before.email !== user.email) mails.send('emailChanged', before.email, { newEmail: user.email })
    return user
  }
}
