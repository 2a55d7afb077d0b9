/** Authenticator apps and recovery codes of users (DESIGN §20). `totp-codes.ts` verifies their codes. */
import encodeQr from 'qr'
import type { Mails } from '../accounts/mails.ts'
import { type Actor, type EventType, newEvent } from '../audit-log/event.ts'
import type { Principal } from '../auth/principal.ts'
import { DecryptionError, type Keyring } from '../encryption/keyring.ts'
import { ServiceError } from '../errors.ts'
import { newId } from '../ids.ts'
import { codeSubject, type LoginThrottle } from '../rate-limits/login-throttle.ts'
import type { OwnFactorChange } from '../storage/operations/factors.ts'
import type { UserRefusal } from '../users/user-store.ts'
import { newRecoveryCodes, recoveryCodeDigest } from './recovery-codes.ts'
import type { StoredRecoveryCode, StoredTotp, TotpStore } from './stored-totp.ts'
import { acceptedStep, newTotpSecret, totpUri } from './time-based-codes.ts'
import { secretContext } from './totp-codes.ts'

/** Milliseconds in which a new secret has to be confirmed. */
const CONFIRMATION_LIMIT = 3_600_000

/** Modules of white around the code, as ISO/IEC 18004 asks for. */
const QUIET_ZONE = 4

export interface TotpDeps {
  readonly store: TotpStore
  readonly keyring: Keyring | null
  readonly loginThrottle: LoginThrottle
  readonly mails: Mails
  /** The name of the service in authenticator apps. */
  readonly productName: string
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

/** A secret for an authenticator app, shown once. */
export interface NewTotp {
  /** Base32, to type in. */
  readonly secret: string
  /** For a link on the device with the app. */
  readonly uri: string
  /** The same as an image: SVG. */
  readonly qr: string
}

export interface TotpState {
  /** Milliseconds since the epoch; `null`: there is no authenticator app. */
  readonly confirmedAt: number | null
  /** Recovery codes that are not used. */
  readonly recoveryCodes: number
}

/** A QR code as SVG. Its background is part of it: scanners need one that is lighter than the modules, and pages may be dark. */
const qrOf = (text: string): string =>
  encodeQr(text, 'svg', { border: QUIET_ZONE }).replace(
    '<path',
    '<rect width="100%" height="100%" fill="#fff"/><path',
  )

/** The session of a user, who has proved their identity. */
type Owner = Pick<Principal, 'cachedUser' | 'credentialId'>

type Refusal = 'totpExists' | 'totpNotBegun' | 'totpNotFound' | 'sessionNotFound' | UserRefusal

/** @throws {ServiceError} if the operation has refused its work. */
const assertDone = (outcome: 'begun' | 'confirmed' | 'removed' | 'replaced' | Refusal): void => {
  switch (outcome) {
    case 'begun':
    case 'confirmed':
    case 'removed':
    case 'replaced':
      return
    case 'totpExists':
    case 'totpNotBegun':
    case 'totpNotFound':
      throw new ServiceError(outcome)
    default:
      throw new ServiceError('signInRequired')
  }
}

const stored = (codes: readonly string[]): StoredRecoveryCode[] =>
  codes.map(code => ({ id: newId(), digest: recoveryCodeDigest(code) }))

export class Totp {
  readonly #deps: TotpDeps

  constructor(deps: TotpDeps) {
    this.#deps = deps
  }

  async state(userId: string): Promise<TotpState> {
    const { store } = this.#deps
    const totp = await store.findTotp(userId)
    return { confirmedAt: totp?.confirmedAt ?? null, recoveryCodes: await store.countRecoveryCodes(userId) }
  }

  /**
   * Makes a secret for an authenticator app. Nothing changes until {@link confirm}; a second call replaces the secret.
   * @throws {ServiceError} `encryptionKeyRequired`, `totpExists`, `signInRequired`
   */
  async begin({ cachedUser, credentialId }: Owner): Promise<NewTotp> {
    const { store, keyring, productName, clock } = this.#deps
    if (keyring === null) throw new ServiceError('encryptionKeyRequired')
    const { id: userId, email } = cachedUser.user
    const secret = newTotpSecret()
    const now = clock()
    const totp = {
      id: newId(now),
      secret: keyring.encrypt(secret, secretContext(userId)),
      expiresAt: now + CONFIRMATION_LIMIT,
    }
    assertDone(await store.beginTotp(userId, totp, credentialId, now))
    const uri = totpUri(secret, productName, email)
    return { secret, uri, qr: qrOf(uri) }
  }

  /**
   * Confirms the secret with the first code of the app: from now on, signing in with the password needs a code.
   * @returns the recovery codes.
   * @throws {ServiceError} `totpNotBegun`, `wrongProofCode`, `tooManyRequests`, `signInRequired`
   */
  async confirm(owner: Owner, code: string, endsOthers: boolean, actor: Actor): Promise<string[]> {
    const { store, loginThrottle, clock } = this.#deps
    const { user } = owner.cachedUser
    const now = clock()
    const { totp, text } = await this.#findUnconfirmed(user.id, now)
    // Counted with all codes of the user: a stolen session must not guess a code and get recovery codes.
    const step = await loginThrottle.check(
      codeSubject(user, actor.ip),
      async () => acceptedStep(text, code, now, totp.lastStep) ?? undefined,
    )
    if (step === undefined) throw new ServiceError('wrongProofCode')
    const codes = newRecoveryCodes()
    const [change, event] = this.#changeOf(owner, 'totp.added', endsOthers, actor)
    assertDone(await store.confirmTotp({ id: totp.id, step }, stored(codes), change, event))
    this.#deps.mails.send('totpAdded', user.email)
    return codes
  }

  /** Removes the authenticator app and the recovery codes. @throws {ServiceError} `totpNotFound`, `signInRequired` */
  async remove(owner: Owner, endsOthers: boolean, actor: Actor): Promise<void> {
    const [change, event] = this.#changeOf(owner, 'totp.removed', endsOthers, actor)
    assertDone(await this.#deps.store.removeTotp(change, event))
    this.#deps.mails.send('totpRemoved', owner.cachedUser.user.email)
  }

  /** Replaces the recovery codes. @returns the new ones. @throws {ServiceError} `totpNotFound`, `signInRequired` */
  async replaceRecoveryCodes(owner: Owner, endsOthers: boolean, actor: Actor): Promise<string[]> {
    const codes = newRecoveryCodes()
    const [change, event] = this.#changeOf(owner, 'recovery-codes.replaced', endsOthers, actor)
    assertDone(await this.#deps.store.replaceRecoveryCodes(stored(codes), change, event))
    this.#deps.mails.send('recoveryCodesReplaced', owner.cachedUser.user.email)
    return codes
  }

  /** @throws {ServiceError} `totpNotBegun`, also if the key of the secret is not configured any more. */
  async #findUnconfirmed(userId: string, now: number): Promise<{ totp: StoredTotp; text: string }> {
    const { store, keyring } = this.#deps
    const totp = await store.findTotp(userId)
    if (keyring === null || totp === undefined || totp.confirmedAt !== null || (totp.expiresAt ?? 0) <= now)
      throw new ServiceError('totpNotBegun')
    try {
      return { totp, text: keyring.decrypt(totp.secret, secretContext(userId)).text }
    } catch (cause) {
      if (!(cause instanceof DecryptionError)) throw cause
      throw new ServiceError('totpNotBegun', { cause })
    }
  }

  #changeOf(
    { cachedUser, credentialId: sessionId }: Owner,
    type: Extract<EventType, 'totp.added' | 'totp.removed' | 'recovery-codes.replaced'>,
    endsOthers: boolean,
    actor: Actor,
  ): [OwnFactorChange, ReturnType<typeof newEvent>] {
    return [{ sessionId, endsOthers }, newEvent(type, actor, cachedUser.user.id, this.#deps.clock())]
  }
}
