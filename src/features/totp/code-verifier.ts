/** Verification of codes: of authenticator apps, and recovery codes. */

import { ServiceError } from '#base/errors'
import type { SecondFactor } from '#core/accounts/second-factor'
import { actingUser } from '#core/audit-log/event'
import { codeSubject } from '#core/rate-limits/login-throttle'
import { needsCode } from '#core/users/factors'
import type { User } from '#core/users/user'
import { type Decrypted, DecryptionError, type Keyring } from '#feature/encryption/keyring'
import type { RateLimit } from '#storage/rate-limit'
import { ERRORS, type TotpDeps } from './definitions.ts'
import { isRecoveryCode, recoveryCodeDigest } from './recovery-codes.ts'
import type { StoredTotp } from './stored-totp.ts'
import { acceptedStep } from './time-based-codes.ts'

/** Seconds between two mails that wrong codes are throttled. */
const NOTICE_INTERVAL = 86_400

const contextOf = (userId: string) => ({ purpose: 'totp', owner: userId })

/** Secrets of authenticator apps are encrypted, each for its user. */
export const encryptSecret = (keyring: Keyring, userId: string, secret: string): string =>
  keyring.encrypt(secret, contextOf(userId))

/**
 * @param keyring `null` without an encryption key.
 * @throws {DecryptionError} see {@link Keyring.decrypt}; also without a key.
 */
export const decryptSecret = (keyring: Keyring | null, userId: string, encrypted: string): Decrypted => {
  if (keyring === null) throw new DecryptionError('ENCRYPTION_KEY is not set')
  return keyring.decrypt(encrypted, contextOf(userId))
}

/** Sign-ins are created after it. */
type CodeVerifierDeps = Omit<
  TotpDeps,
  'users' | 'sessions' | 'signIns' | 'emailAddresses' | 'readKeptMetrics'
>

export class CodeVerifier implements SecondFactor {
  readonly #deps: CodeVerifierDeps
  readonly #notices: RateLimit

  constructor(deps: CodeVerifierDeps) {
    this.#deps = deps
    this.#notices = deps.openRateLimit({ name: 'wrong-code-mails', points: 1, seconds: NOTICE_INTERVAL })
  }

  async verify(user: User, code: string, ip: string | null): Promise<boolean> {
    // Nobody can guess one, and the owner needs one that works while somebody else sends wrong codes.
    if (isRecoveryCode(code)) return this.#useRecoveryCode(user, code, ip)
    try {
      const isRight = await this.#deps.loginThrottle.check(codeSubject(user, ip), async () =>
        (await this.#useTimeBasedCode(user.id, code)) ? true : undefined,
      )
      return isRight === true
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'tooManyRequests' && needsCode(user))
        await this.#noticeWrongCodes(user)
      throw error
    }
  }

  async #useTimeBasedCode(userId: string, code: string): Promise<boolean> {
    const { store, clock } = this.#deps
    const totp = await store.findTotp(userId)
    if (totp === undefined || totp.confirmedAt === null) return false
    const now = clock()
    const { text, encrypted } = this.#decrypt(userId, totp)
    const step = acceptedStep(text, code, now, totp.lastStep)
    return step !== null && store.useTotpStep({ id: totp.id, secret: encrypted }, step, now)
  }

  async #useRecoveryCode(user: User, code: string, ip: string | null): Promise<boolean> {
    const { store, mails, newEvent } = this.#deps
    const event = newEvent('recovery-code.used', actingUser(user.id, ip), user.id)
    const left = await store.useRecoveryCode(recoveryCodeDigest(code), event)
    if (left === null) return false
    mails.send('recoveryCodeUsed', user, { left })
    return true
  }

  /**
   * @returns the secret, and how it is encrypted from now on: again, if its key is a former one.
   * @throws {ServiceError} `codesUnavailable`
   */
  #decrypt(userId: string, { secret }: StoredTotp): { text: string; encrypted: string } {
    const keyring = this.#deps.keyring()
    try {
      const { text, isOutdated } = decryptSecret(keyring, userId, secret)
      return { text, encrypted: keyring && isOutdated ? encryptSecret(keyring, userId, text) : secret }
    } catch (cause) {
      if (!(cause instanceof DecryptionError)) throw cause
      this.#deps.logger.error(
        { err: cause, user: userId },
        'the secret of an authenticator app cannot be decrypted',
      )
      throw new ServiceError(ERRORS.codesUnavailable, { cause })
    }
  }

  /** The mail is worth sending: a client that sends codes has another proof of identity, or a session. */
  async #noticeWrongCodes(user: User): Promise<void> {
    if ((await this.#notices.consume(user.id)).allowed) this.#deps.mails.send('wrongCodes', user)
  }
}
