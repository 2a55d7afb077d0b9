/** Sign-in with a passkey, without e-mail and password. */

import { ServiceError } from '#base/errors'
import type { AuthResult } from '#core/accounts/auth-result'
import type { VerifiedSignIn } from '#core/accounts/sign-ins'
import { anonymous } from '#core/audit-log/event'
import type { SessionClient } from '#core/auth/session'
import type { User } from '#core/users/user'
import type { Challenges } from './challenges.ts'
import { type PresentedCredential, userHandleOf } from './credentials.ts'
import { ERRORS, type PasskeysDeps } from './definitions.ts'
import type { PasskeyUse } from './stored-passkeys.ts'
import type { RequestOptions } from './web-authn.ts'

interface Verified {
  readonly user: User
  readonly use: PasskeyUse
}

/** Whether the authenticator names the user who has the passkey (WebAuthn §7.2, step 6). */
const namesUser = ({ response }: PresentedCredential, userId: string): boolean =>
  typeof response.userHandle === 'string' &&
  Buffer.from(response.userHandle, 'base64url').equals(userHandleOf(userId))

export class PasskeySignIns {
  readonly #deps: PasskeysDeps
  readonly #challenges: Challenges

  constructor(deps: PasskeysDeps, challenges: Challenges) {
    this.#deps = deps
    this.#challenges = challenges
  }

  /** Begins a sign-in. @returns options for the browser, for five minutes. @throws {ServiceError} `passkeysUnavailable` */
  async requestOptions(): Promise<RequestOptions> {
    const ceremony = await this.#challenges.begin(null)
    const { requestOptions } = await import('./web-authn.ts')
    return requestOptions(ceremony)
  }

  /**
   * Opens a session. It needs no code: the authenticator has verified the user.
   * @throws {ServiceError} `wrongPasskey`; `accountDisabled`, `emailNotVerified` only after the correct signature;
   * `passkeysUnavailable`, `storeUnavailable`
   */
  signIn(credential: PresentedCredential, client: SessionClient): Promise<AuthResult> {
    const { signIns, newEvent } = this.#deps
    const verify = async (): Promise<VerifiedSignIn> => {
      const { user, use } = await this.#verify(credential)
      const details = { passkey: use.id }
      const regressed = newEvent('passkey.counter-regressed', anonymous(client.ip), user.id, details)
      return { user, proof: ['usePasskey', use, regressed], details }
    }
    return signIns.complete('passkey', { client, verify })
  }

  /** @throws {ServiceError} `wrongPasskey` */
  async #verify(credential: PresentedCredential): Promise<Verified> {
    const { store, findUser } = this.#deps
    const ceremony = await this.#challenges.take(credential, null)
    const passkey = ceremony && (await store.findPasskey(credential.id))
    const user = passkey && namesUser(credential, passkey.userId) && (await findUser(passkey.userId))
    if (!(ceremony && passkey && user)) throw new ServiceError(ERRORS.wrongPasskey)
    const { verifyCredential } = await import('./web-authn.ts')
    try {
      const use = await verifyCredential(ceremony, credential, passkey.publicKey)
      return { user, use: { id: passkey.id, ...use } }
    } catch {
      // Errors of many kinds, caused by the client: not logged as failures.
      throw new ServiceError(ERRORS.wrongPasskey)
    }
  }
}
