/**
 * Signatures of webhooks, as of Standard Webhooks 1.0 (https://www.standardwebhooks.com): `v1`, HMAC-SHA-256 with each secret of the
 * webhook, and `v1a`, Ed25519 with the key of access tokens if it is one.
 */
import { createHmac, randomBytes } from 'node:crypto'
import type { Ed25519Signer } from '#core/auth/signing-keys'

const SECRET_PREFIX = 'whsec_'
const PUBLIC_KEY_PREFIX = 'whpk_'

/** The specification allows 24 to 64. */
const SECRET_BYTES = 32

export const newSecret = (): string => SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64')

export const shownPublicKey = ({ publicKey }: Ed25519Signer): string => PUBLIC_KEY_PREFIX + publicKey

export interface SignedMessage {
  /** Has no full stop. */
  readonly id: string
  /** Seconds since the epoch. */
  readonly timestamp: number
  /** The exact text that is sent. */
  readonly body: string
}

/** @returns the value of `webhook-signature`. */
export const signatureOf = (
  { id, timestamp, body }: SignedMessage,
  secrets: readonly string[],
  ed25519: Ed25519Signer | null,
): string => {
  const signed = `${id}.${timestamp}.${body}`
  const symmetric = secrets.map(secret => {
    const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')
    return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`
  })
  // A token has no braces, so that what is signed here is never one.
  const asymmetric = ed25519 === null ? [] : [`v1a,${ed25519.sign(signed).toString('base64')}`]
  return [...symmetric, ...asymmetric].join(' ')
}
