/** Secrets of authenticator apps: encrypted, each for its user. */
import { type Decrypted, DecryptionError, type Keyring } from '../encryption/keyring.ts'

const contextOf = (userId: string) => ({ purpose: 'totp', owner: userId })

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
