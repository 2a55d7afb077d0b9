/** Authenticator apps and recovery codes in imports and exports of users (docs/design.md, "Account life cycle"). */
import { setImmediate } from 'node:timers/promises'
import type { Static, TObject } from '@sinclair/typebox'
import { ServiceError } from '#base/errors'
import { newId } from '#base/ids'
import type { BulkFactor, LineUser } from '#core/accounts/bulk-factors'
import type { User } from '#core/users/user'
import { DecryptionError, type Keyring } from '#feature/encryption/keyring'
import { decryptSecret, encryptSecret } from './code-verifier.ts'
import type schemas from './credential-schemas.ts'
import { ERRORS } from './definitions.ts'
import { confirmedTotpRow, recoveryCodeRow, type TotpStore } from './stored-totp.ts'
import { fromBase32, toBase32 } from './time-based-codes.ts'

type Credentials = Static<TObject<typeof schemas>>

const NO_ERRORS = {}

/** Secrets that are decrypted at once: about a millisecond. */
const SLICE = 100

interface Deps {
  readonly store: Pick<TotpStore, 'listSecrets' | 'listRecoveryCodes'>
  /** Called with the first secret. `null` without an encryption key. */
  readonly keyring: () => Keyring | null
}

export class BulkTotp implements BulkFactor<Credentials> {
  readonly factor = 'totp'
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  toRows({ id: userId }: LineUser, { totpSecret, recoveryCodes = [] }: Credentials, now: number) {
    if (totpSecret === undefined) {
      const errors = recoveryCodes.length === 0 ? NO_ERRORS : { 'credentials.totpSecret': ['is required'] }
      return { rows: [], errors }
    }
    const keyring = this.#deps.keyring()
    if (keyring === null) {
      const message = 'cannot be encrypted: this service needs ENCRYPTION_KEY'
      return { rows: [], errors: { 'credentials.totpSecret': [message] } }
    }
    // Other encoders may set the bits after the last byte.
    const secret = toBase32(fromBase32(totpSecret))
    const rows = [
      confirmedTotpRow(newId(now), encryptSecret(keyring, userId, secret), now),
      ...recoveryCodes.map(digest => recoveryCodeRow({ id: newId(now), digest })),
    ]
    return { rows, errors: NO_ERRORS }
  }

  async credentialsOf(users: readonly User[]): Promise<ReadonlyMap<string, Credentials>> {
    const { store } = this.#deps
    const ids = users.map(({ id }) => id)
    const secrets = await store.listSecrets(ids)
    const codes = Map.groupBy(await store.listRecoveryCodes(ids), ({ userId }) => userId)
    const credentials = new Map<string, Credentials>()
    for (const { userId, secret } of secrets) {
      // Other requests have their turn.
      if (credentials.size % SLICE === 0) await setImmediate()
      const digests = codes.get(userId)?.map(({ digest }) => digest)
      const totpSecret = this.#decrypt(userId, secret)
      credentials.set(userId, { totpSecret, ...(digests !== undefined && { recoveryCodes: digests }) })
    }
    return credentials
  }

  /** @throws {ServiceError} `secretsUnavailable`: an export without the secret would remove the second factor. */
  #decrypt(userId: string, secret: string): string {
    try {
      return decryptSecret(this.#deps.keyring(), userId, secret).text
    } catch (error) {
      if (!(error instanceof DecryptionError)) throw error
      throw new ServiceError(ERRORS.secretsUnavailable, {
        cause: new Error(`the secret of user ${userId}: ${error.message}`, { cause: error }),
      })
    }
  }
}
