/** The RSA key of ID tokens: how it is read and made. */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
} from 'node:crypto'
import type { RsaPublicJwk } from '#core/auth/signing-keys'
import { type Reader, SettingError } from '#feature/declaration'

/** Bits (RFC 7518 §3.3). */
const MIN_BITS = 2_048

/** An RSA key in PKCS#8 PEM, whose line breaks may be written as `\\n`. */
export const rsaKey: Reader<KeyObject> = text => {
  let key: KeyObject
  try {
    key = createPrivateKey(text.replaceAll('\\n', '\n').trim())
  } catch {
    throw new SettingError('must be a private key in PKCS#8 PEM (-----BEGIN PRIVATE KEY-----)')
  }
  if (key.asymmetricKeyType !== 'rsa' || (key.asymmetricKeyDetails?.modulusLength ?? 0) < MIN_BITS)
    throw new SettingError(`must be an RSA key of at least ${MIN_BITS} bits`)
  return key
}

export const newRsaKey = (): string =>
  generateKeyPairSync('rsa', { modulusLength: MIN_BITS })
    .privateKey.export({ type: 'pkcs8', format: 'pem' })
    .toString()

/** With the id of RFC 7638. */
export const rsaJwkOf = (key: KeyObject): RsaPublicJwk => {
  const { n = '', e = '' } = createPublicKey(key).export({ format: 'jwk' })
  const kid = createHash('sha256')
    .update(JSON.stringify({ e, kty: 'RSA', n }))
    .digest('base64url')
  return { kty: 'RSA', n, e, kid, alg: 'RS256', use: 'sig' }
}
