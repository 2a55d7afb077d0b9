/** Sign-ups whose e-mail has to be verified before a session is opened. */

import { newEvent } from '../audit-log/event.ts'
import { ServiceError } from '../errors.ts'
import type { SignUp } from './accounts.ts'
import { newEmailToken } from './email-token.ts'
import type { ExistingAccountNotice } from './existing-account-notice.ts'
import type { Mails } from './mails.ts'
import type { NewAccountsDeps } from './new-accounts.ts'
import { newUser } from './new-user.ts'

export interface VerifiedSignUpsDeps extends NewAccountsDeps {
  readonly mails: Mails
  readonly existingAccountNotice: ExistingAccountNotice
}

/** How often a sign-up is tried whose e-mail is taken, and free again the next timestamp. */
const ATTEMPTS = 3

export class VerifiedSignUps {
  readonly #parts: VerifiedSignUpsDeps

  constructor(parts: VerifiedSignUpsDeps) {
    this.#parts = parts
  }

  /**
   * A sign-up whose answer does not tell whether the e-mail has an account already: it costs the same hash and the same
   * write, and what there is to say is in the mail.
   * @throws {ServiceError} `overloaded`, `clientGone`, `draining`, `storeUnavailable`
   */
  async register(input: SignUp, ip: string | null, signal?: AbortSignal): Promise<void> {
    const { hashing, existingAccountNotice } = this.#parts
    const passwordHash = await hashing.hash(input.password, signal)
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      if (await this.#add(input, passwordHash, ip)) return
      if (await existingAccountNotice.send(input.email, ip)) return
      // Its holder has closed the account between the two.
    }
    throw new ServiceError('overloaded')
  }

  /** @returns false when the e-mail is taken. */
  async #add(input: SignUp, passwordHash: string, ip: string | null): Promise<boolean> {
    const { accountStore, mails, clock } = this.#parts
    const now = clock()
    const user = newUser(input, now)
    const { token, stored } = newEmailToken('verification', user.id, input.email, now)
    const event = newEvent('user.signed-up', { type: 'user', id: user.id, ip }, user.id, now)
    const added = await accountStore.addUser({ ...user, passwordHash }, event, { emailToken: stored })
    if (added) mails.verification(input.email, token)
    return added
  }
}
