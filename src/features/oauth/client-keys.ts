/** The public keys of clients (RFC 7517), with which assertions are verified. */
import { createPublicKey, type KeyObject } from 'node:crypto'
import type { ClientMetadata, Jwk } from './client.ts'

/** Bits of RSA (RFC 7518 §3.3). */
const MIN_RSA = 2_048

export interface ClientKey {
  readonly id: string | null
  readonly key: KeyObject
  /** The algorithms of RFC 7518 and RFC 8037 that the key verifies. */
  readonly algorithms: readonly string[]
}

const algorithmsOf = ({ asymmetricKeyType: type, asymmetricKeyDetails }: KeyObject): readonly string[] => {
  if (type === 'rsa') return (asymmetricKeyDetails?.modulusLength ?? 0) < MIN_RSA ? [] : ['RS256', 'PS256']
  // Two names of one algorithm (RFC 9864 §2.2).
  if (type === 'ed25519') return ['EdDSA', 'Ed25519']
  return asymmetricKeyDetails?.namedCurve === 'prime256v1' ? ['ES256'] : []
}

/** @returns `undefined` for a key that is damaged, or of another kind. */
const keyOf = (jwk: Jwk): ClientKey | undefined => {
  try {
    const key = createPublicKey({ key: jwk, format: 'jwk' })
    const possible = algorithmsOf(key)
    const isOtherName = jwk.crv === 'Ed25519' && possible.includes(String(jwk.alg))
    const algorithms = possible.filter(each => jwk.alg === undefined || jwk.alg === each || isOtherName)
    return algorithms.length === 0 || (jwk.use !== undefined && jwk.use !== 'sig')
      ? undefined
      : { id: typeof jwk.kid === 'string' ? jwk.kid : null, key, algorithms }
  } catch {
    return undefined
  }
}

/** Whether every key can verify assertions: RSA of at least 2048 bits, P-256 or Ed25519. */
export const areUsable = (jwks: ClientMetadata['jwks']): boolean =>
  jwks === null || jwks.keys.every(jwk => keyOf(jwk) !== undefined)

/** Keys that are fetched with one request. */
const MAX_KEYS = 20

/**
 * The keys in a document that a client publishes (RFC 7517 §5). Those that cannot verify assertions are left out, and private ones, which
 * everybody knows then.
 */
export const keysIn = (document: unknown): readonly ClientKey[] | null => {
  const { keys } = (typeof document === 'object' && document !== null ? document : {}) as { keys?: unknown }
  if (!Array.isArray(keys)) return null
  return keys.slice(0, MAX_KEYS).flatMap((jwk: Jwk | null) => {
    const isPublic = typeof jwk === 'object' && jwk !== null && !('d' in jwk)
    return isPublic ? (keyOf(jwk) ?? []) : []
  })
}

const parsed = new WeakMap<object, readonly ClientKey[]>()

/** The keys of a client, parsed once for each client in memory. */
export const keysOf = ({ jwks }: Pick<ClientMetadata, 'jwks'>): readonly ClientKey[] => {
  if (jwks === null) return []
  const keys = parsed.get(jwks) ?? jwks.keys.flatMap(jwk => keyOf(jwk) ?? [])
  parsed.set(jwks, keys)
  return keys
}
