/** Sign-ups whose e-mail has to be verified before a session is opened. */
import { ServiceError } from '../errors.ts'
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

/** How often a sign-up is tried whose e-mail is taken, and free again the next moment. */
const ATTEMPTS = 3

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
    const { hashing, takenEmails } = this.#parts
    const passwordHash = await hashing.hash(input.password, signal)
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      if (await this.#add(input, passwordHash, ip)) return
      if (await takenEmails.tellHolder(input.email, ip)) return
      // Its holder has closed the account between the two.
    }
    throw new ServiceError('overloaded')
  }

  /** @returns false when the e-mail is taken. */
  async #add(input: SignUp, passwordHash: string, ip: string | null): Promise<boolean> {
    const { accountStore, mails, clock } = this.#parts
    const now = clock()
    const user = newUser(input, now)
    const { token, stored } = newMailedToken('verification', user.id, input.email, now)
    const event = newEvent('user.signed-up', { type: 'user', id: user.id, ip }, user.id, now)
    const added = await accountStore.addUser({ ...user, passwordHash }, event, { mailedToken: stored })
    if (added) mails.verification(input.email, token)
    return added
  }
}
