/**
 * Encrypts secrets that the service has to read again, such as those of authenticator apps: AES-256-GCM with a random nonce. Text names
 * the key that encrypted it, so keys can be rotated.
 */
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'
import { readSecret, type SecretSource } from '#core/auth/secret-file'

const ALGORITHM = 'aes-256-gcm'
const VERSION = 'v1'

/** Bytes. 96-bit random nonces are safe for 2³² encryptions with one key (NIST SP 800-38D §8.3). */
const NONCE = 12
const TAG = 16

interface Key {
  readonly id: string
  readonly bytes: Buffer
}

/** HKDF, so that secrets of any form become keys. Distinct labels: the id reveals nothing about the key. */
const keyOf = (secret: string): Key => {
  const bytes = Buffer.from(hkdfSync('sha256', secret, '', 'gatehouse encryption key', 32))
  return {
    id: createHash('sha256').update('gatehouse key id').update(bytes).digest('hex').slice(0, 16),
    bytes,
  }
}

/** What is encrypted and for whom. Text that was moved to another row cannot be decrypted there. */
export interface EncryptionContext {
  readonly purpose: string
  /** The id of the user, or of what else the text belongs to. */
  readonly owner: string
}

const aadOf = ({ purpose, owner }: EncryptionContext): Buffer =>
  Buffer.from(JSON.stringify([VERSION, purpose, owner]))

export interface Decrypted {
  readonly text: string
  /** Whether it was encrypted with a previous key: encrypt it again. */
  readonly isOutdated: boolean
}

/** The text was changed, belongs to another context, or its key is not configured. */
export class DecryptionError extends Error {
  override readonly name = 'DecryptionError'
}

export interface EncryptionSettings {
  readonly encryptionKey: SecretSource | null
  readonly encryptionKeyPrevious: string | null
}

export class Keyring {
  readonly #current: Key
  readonly #keys: ReadonlyMap<string, Key>

  /**
   * The keys of a configuration. On SQLite, the first start creates the key beside the database.
   * @returns `null` if there is none.
   * @throws {Error} `BAD_SECRET_FILE`, see {@link readSecret}
   */
  static from({ encryptionKey, encryptionKeyPrevious }: EncryptionSettings): Keyring | null {
    if (encryptionKey === null) return null
    const previous = encryptionKeyPrevious === null ? [] : [encryptionKeyPrevious]
    return new Keyring(readSecret(encryptionKey), previous)
  }

  /** @param previous secrets that only decrypt. */
  constructor(current: string, previous: readonly string[] = []) {
    this.#current = keyOf(current)
    const keys = [...previous.map(keyOf), this.#current]
    this.#keys = new Map(keys.map(key => [key.id, key]))
  }

  /** @returns ASCII text: version, key id, and base64url of nonce, ciphertext and tag. */
  encrypt(text: string, context: EncryptionContext): string {
    const nonce = randomBytes(NONCE)
    const cipher = createCipheriv(ALGORITHM, this.#current.bytes, nonce).setAAD(aadOf(context))
    const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
    return `${VERSION}.${this.#current.id}.${sealed.toString('base64url')}`
  }

  /** @throws {DecryptionError} */
  decrypt(encrypted: string, context: EncryptionContext): Decrypted {
    const [version, keyId = '', sealed = ''] = encrypted.split('.')
    const key = this.#keys.get(keyId)
    if (version !== VERSION || key === undefined)
      throw new DecryptionError(`The key ${keyId} is not ENCRYPTION_KEY or ENCRYPTION_KEY_PREVIOUS`)
    const bytes = Buffer.from(sealed, 'base64url')
    try {
      const nonce = bytes.subarray(0, NONCE)
      const decipher = createDecipheriv(ALGORITHM, key.bytes, nonce, { authTagLength: TAG })
      decipher.setAAD(aadOf(context)).setAuthTag(bytes.subarray(-TAG))
      const text = Buffer.concat([decipher.update(bytes.subarray(NONCE, -TAG)), decipher.final()])
      return { text: text.toString('utf8'), isOutdated: key !== this.#current }
    } catch (cause) {
      throw new DecryptionError('The encrypted text was changed, or belongs to something else', { cause })
    }
  }
}
