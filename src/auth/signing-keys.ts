/** The keys that sign access tokens, made from their secrets. */
import { createHmac } from 'node:crypto'

export interface SigningKey {
  /** Names the key in a token's header, so that secrets can be rotated. Does not reveal the secret. */
  readonly id: string
  readonly secret: string
}

export interface SigningKeys {
  readonly current: SigningKey
  /** Verifies tokens, but no longer signs. */
  readonly previous: SigningKey | null
}

const signingKey = (secret: string): SigningKey => ({
  id: createHmac('sha256', secret).update('gatehouse key id').digest('base64url').slice(0, 8),
  secret,
})

export const signingKeys = (secret: string, previous: string | null): SigningKeys => ({
  current: signingKey(secret),
  previous: previous === null ? null : signingKey(previous),
})
