/** Authenticator apps and recovery codes of users (docs/design.md, "Second factors"). `code-verifier.ts` verifies their codes. */
import encodeQr from 'qr'
import { ServiceError } from '#base/errors'
import { assertDone, type FactorChange } from '#core/accounts/factor-changes'
import type { AuditEvent } from '#core/audit-log/event'
import { actingSession, type SessionOwner } from '#core/auth/principal'
import { codeSubject } from '#core/rate-limits/login-throttle'
import { toIsoOrNull } from '#core/users/serializers'
import type { OwnFactorChange } from '#core/users/stored-factors'
import type { User } from '#core/users/user'
import { defineFeature, newId } from '#feature/declaration'
import { DecryptionError } from '#feature/encryption/keyring'
import { BulkTotp } from './bulk-totp.ts'
import { CodeVerifier, decryptSecret, encryptSecret } from './code-verifier.ts'
import { definitions, ERRORS, type TotpDeps } from './definitions.ts'
import { newRecoveryCodes, recoveryCodeDigest } from './recovery-codes.ts'
import type { StoredRecoveryCode, StoredTotp } from './stored-totp.ts'
import { acceptedStep, newTotpSecret, totpUri } from './time-based-codes.ts'

/** Milliseconds in which a new secret has to be confirmed. */
const CONFIRMATION_LIMIT = 3_600_000

/** Modules of white around the code, as ISO/IEC 18004 asks for. */
const QUIET_ZONE = 4

/** A secret for an authenticator app, shown once. */
export interface NewTotp {
  /** Base32, to type in. */
  readonly secret: string
  /** For a link on the device with the app. */
  readonly uri: string
  /** The URI as a QR code, in SVG. */
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

const storedCodes = (codes: readonly string[]): StoredRecoveryCode[] =>
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
  async begin(owner: SessionOwner): Promise<NewTotp> {
    const { store, config, clock } = this.#deps
    const keyring = this.#deps.keyring()
    if (keyring === null) throw new ServiceError(ERRORS.encryptionKeyRequired)
    const { id: userId, email } = owner.cachedUser.user
    const secret = newTotpSecret()
    const now = clock()
    const totp = {
      id: newId(now),
      secret: encryptSecret(keyring, userId, secret),
      expiresAt: now + CONFIRMATION_LIMIT,
    }
    assertDone(await store.beginTotp(userId, totp, actingSession(owner), now), ERRORS)
    const uri = totpUri(secret, config.productName, email)
    return { secret, uri, qr: qrOf(uri) }
  }

  /**
   * Confirms the secret with the first code of the app: from now on, signing in with the password needs a code.
   * @returns the recovery codes.
   * @throws {ServiceError} `totpNotBegun`, `wrongCode`, `tooManyRequests`, `signInRequired`
   */
  async confirm(owner: SessionOwner, code: string, change: FactorChange): Promise<string[]> {
    const { store, loginThrottle, clock } = this.#deps
    const { user } = owner.cachedUser
    const now = clock()
    const { totp, text } = await this.#findUnconfirmed(user.id, now)
    // Counted with all codes of the user: a stolen session must not guess a code and get recovery codes.
    const step = await loginThrottle.check(
      codeSubject(user, change.actor.ip),
      async () => acceptedStep(text, code, now, totp.lastStep) ?? undefined,
    )
    if (step === undefined) throw new ServiceError('wrongCode')
    const codes = newRecoveryCodes()
    const stored = this.#changeOf(owner, 'totp.added', change)
    assertDone(await store.confirmTotp({ id: totp.id, step }, storedCodes(codes), ...stored), ERRORS)
    this.#deps.mails.send('totpAdded', user)
    return codes
  }

  /** Removes the authenticator app and the recovery codes. @throws {ServiceError} `totpNotFound`, `signInRequired` */
  async remove(owner: SessionOwner, change: FactorChange): Promise<void> {
    const stored = this.#changeOf(owner, 'totp.removed', change)
    const { store, signIns } = this.#deps
    assertDone(await store.removeTotp(...stored, signIns.knownMethods.methods), ERRORS)
    this.#deps.mails.send('totpRemoved', owner.cachedUser.user)
  }

  /** Replaces the recovery codes. @returns the new ones. @throws {ServiceError} `totpNotFound`, `signInRequired` */
  async replaceRecoveryCodes(owner: SessionOwner, change: FactorChange): Promise<string[]> {
    const codes = newRecoveryCodes()
    const stored = this.#changeOf(owner, 'recovery-codes.replaced', change)
    assertDone(await this.#deps.store.replaceRecoveryCodes(storedCodes(codes), ...stored), ERRORS)
    this.#deps.mails.send('recoveryCodesReplaced', owner.cachedUser.user)
    return codes
  }

  /** @throws {ServiceError} `totpNotBegun`, also if the key of the secret is not configured any more. */
  async #findUnconfirmed(userId: string, now: number): Promise<{ totp: StoredTotp; text: string }> {
    const { store, keyring } = this.#deps
    const totp = await store.findTotp(userId)
    if (totp === undefined || totp.confirmedAt !== null || (totp.expiresAt ?? 0) <= now)
      throw new ServiceError(ERRORS.totpNotBegun)
    try {
      return { totp, text: decryptSecret(keyring(), userId, totp.secret).text }
    } catch (cause) {
      if (!(cause instanceof DecryptionError)) throw cause
      throw new ServiceError(ERRORS.totpNotBegun, { cause })
    }
  }

  #changeOf(
    owner: SessionOwner,
    type: Exclude<keyof typeof definitions.events, 'recovery-code.used'>,
    { endsOthers, actor }: FactorChange,
  ): [OwnFactorChange, AuditEvent] {
    const change = { session: actingSession(owner), endsOthers }
    return [change, this.#deps.newEvent(type, actor, owner.cachedUser.user.id)]
  }
}

export const serializeTotp = ({ confirmedAt, recoveryCodes }: TotpState) => ({
  confirmedAt: toIsoOrNull(confirmedAt),
  recoveryCodes,
})

/** An app and its recovery codes are second factors: neither signs in by itself. */
const listMethods = async ({ store }: Pick<TotpDeps, 'store'>, { id, factors }: User) => {
  if (!factors.includes('totp')) return []
  const found = await store.findTotp(id)
  if (!found?.confirmedAt) return []
  const left = await store.countRecoveryCodes(id)
  const factor = { id: null, lastUsedAt: null, addedAt: found.confirmedAt, isFactor: true }
  return [
    { ...factor, method: 'totp', label: null },
    ...(left > 0 ? [{ ...factor, method: 'recoveryCodes', label: String(left) }] : []),
  ]
}

export const totp = defineFeature({
  ...definitions,
  routes: new URL('routes/', import.meta.url),
  pages: () => import('./pages.ts'),
  listMethods,
  bulkFactor: {
    credentials: () => import('./credential-schemas.ts'),
    create: deps => new BulkTotp(deps),
  },
  secondFactor: deps => new CodeVerifier(deps),
  services: { totp: deps => new Totp(deps) },
})
