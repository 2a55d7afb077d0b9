/** Targets of webhooks: encrypted, each for its webhook. */
import { DecryptionError, type Keyring } from '#feature/encryption/keyring'
import type { WebhookTarget } from './webhook.ts'

const contextOf = (owner: string) => ({ purpose: 'webhook', owner })

/** @throws {DecryptionError} without a key. */
export const encryptTarget = (keyring: Keyring | null, webhookId: string, target: WebhookTarget): string => {
  if (keyring === null) throw new DecryptionError('ENCRYPTION_KEY is not set')
  return keyring.encrypt(JSON.stringify(target), contextOf(webhookId))
}

export interface DecryptedTarget {
  readonly target: WebhookTarget
  /** Whether it was encrypted with a previous key: encrypt it again. */
  readonly isOutdated: boolean
}

/** @throws {DecryptionError} see {@link Keyring.decrypt}; also without a key. */
export const decryptTarget = (
  keyring: Keyring | null,
  webhookId: string,
  encrypted: string,
): DecryptedTarget => {
  if (keyring === null) throw new DecryptionError('ENCRYPTION_KEY is not set')
  const { text, isOutdated } = keyring.decrypt(encrypted, contextOf(webhookId))
  return { target: JSON.parse(text), isOutdated }
}
