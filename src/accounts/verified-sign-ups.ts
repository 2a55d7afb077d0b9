/** Sign-ups whose e-mail has to be verified before a session is opened. */
import { newEvent } from '../users/event.ts'
import type { SignUp } from './accounts.ts'
import { newMailedToken } from './mailed-token.ts'
import type { Mails } from './mails.ts'
import type { NewAccountsParts } from './new-accounts.ts'
import { newUser } from './new-user.ts'
import type { TakenEmails } from './taken-emails.ts'

export interface VerifiedSignUpsParts extends NewAccountsParts {
  readonly mails: Mails
  readonly takenEmails: TakenEmails
}

export class VerifiedSignUps {
  readonly #parts: VerifiedSignUpsParts

  constructor(parts: VerifiedSignUpsParts) {
    this.#parts = parts
  }

  /**
   * A sign-up whose answer does not tell whether the e-mail has an account already: it costs the same hash and the same
   * write, and what there is to say is in the mail.
   * @throws {ServiceError} `overloaded`, `clientGone`, `draining`, `storeUnavailable`
   */
  async register(input: SignUp, ip: string | null, signal?: AbortSignal): Promise<void> {
    const { accountStore, hashing, mails, takenEmails, clock } = this.#parts
    const { email } = input
    const passwordHash = await hashing.hash(input.password, signal)
    const now = clock()
    const user = newUser(input, now)
    const { token, stored } = newMailedToken('verification', user.id, email, now)
    const event = newEvent('user.signed-up', { type: 'user', id: user.id, ip }, user.id, now)
    if (await accountStore.addUser({ ...user, passwordHash }, event, { mailedToken: stored }))
      mails.verification(email, token)
    else await takenEmails.tellHolder(email, ip)
  }
}
