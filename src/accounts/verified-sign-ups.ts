/** Sign-ups with REQUIRE_EMAIL_VERIFICATION: no session before the e-mail is verified. */
import { actingUser, newEvent } from '../audit-log/event.ts'
import { ServiceError } from '../errors.ts'
import { type NewAccountsDeps, newUser } from './account-creation.ts'
import type { SignUp } from './accounts.ts'
import { newEmailToken } from './email-token.ts'
import type { ExistingAccountNotice } from './existing-account-notice.ts'
import type { Mails } from './mails.ts'
import { retryOnChange } from './retry.ts'

export interface VerifiedSignUpsDeps extends Omit<NewAccountsDeps, 'users'> {
  readonly mails: Mails
  readonly existingAccountNotice: ExistingAccountNotice
}

export class VerifiedSignUps {
  readonly #deps: VerifiedSignUpsDeps

  constructor(deps: VerifiedSignUpsDeps) {
    this.#deps = deps
  }

  /**
   * Signs a user up, without revealing whether the e-mail already has an account: both cases cost one hash and one write,
   * and only the mail differs.
   * @throws {ServiceError} `overloaded`, `clientGone`, `draining`, `storeUnavailable`
   */
  async register(input: SignUp, ip: string | null, signal?: AbortSignal): Promise<void> {
    const { hasher, existingAccountNotice } = this.#deps
    const passwordHash = await hasher.hash(input.password, signal)
    // Neither succeeds where the account is deleted between the two.
    const isDone = await retryOnChange(
      async () =>
        (await this.#add(input, passwordHash, ip)) ||
        (await existingAccountNotice.send(input.email, ip)) ||
        undefined,
    )
    if (!isDone) throw new ServiceError('overloaded')
  }

  /** @returns false when the e-mail is taken. */
  async #add(input: SignUp, passwordHash: string, ip: string | null): Promise<boolean> {
    const { accountStore, mails, clock } = this.#deps
    const now = clock()
    const user = newUser(input, now)
    const { token, stored } = newEmailToken('verification', user.id, input.email, now)
    const event = newEvent('user.signed-up', actingUser(user.id, ip), user.id, now)
    const isAdded = await accountStore.addUser({ ...user, passwordHash }, event, { emailToken: stored })
    if (isAdded) mails.send('verification', input.email, { token })
    return isAdded
  }
}
