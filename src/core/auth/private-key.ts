/** Private keys of access tokens (docs/design.md, "Tokens and sessions"): Ed25519 and P-256, in PKCS#8 PEM. */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto'

/** The algorithm of a signature (RFC 7518 §3.1, RFC 8037 §3.1) with the curve of its keys. */
export const CURVES = { EdDSA: 'Ed25519', ES256: 'P-256' } as const

export type AsymmetricAlgorithm = keyof typeof CURVES

export const ASYMMETRIC_ALGORITHMS = Object.keys(CURVES) as AsymmetricAlgorithm[]

export interface PrivateKey {
  readonly algorithm: AsymmetricAlgorithm
  readonly key: KeyObject
}

/** Its message follows the name of the setting or file, and does not contain the key. */
export class PrivateKeyError extends Error {}

const NEEDED = 'must be a private key in PKCS#8 PEM (-----BEGIN PRIVATE KEY-----)'

const ENCRYPTED = /^-----BEGIN ENCRYPTED|^Proc-Type: *4, *ENCRYPTED/m
const PUBLIC = /^-----BEGIN (?:RSA )?(?:PUBLIC KEY|CERTIFICATE)-----/
const PKCS8 = /^-----BEGIN PRIVATE KEY-----\s[\w+/=\s]+-----END PRIVATE KEY-----$/

const parse = (pem: string): KeyObject => {
  if (ENCRYPTED.test(pem)) throw new PrivateKeyError(`is encrypted: it ${NEEDED}, without a passphrase`)
  if (PUBLIC.test(pem)) throw new PrivateKeyError(`is a public key: it ${NEEDED}`)
  if (!PKCS8.test(pem)) throw new PrivateKeyError(NEEDED)
  try {
    return createPrivateKey(pem)
  } catch {
    throw new PrivateKeyError(NEEDED)
  }
}

const algorithmOf = ({ asymmetricKeyType: type, asymmetricKeyDetails }: KeyObject): AsymmetricAlgorithm => {
  if (type === 'ed25519') return 'EdDSA'
  if (asymmetricKeyDetails?.namedCurve === 'prime256v1') return 'ES256'
  const name = asymmetricKeyDetails?.namedCurve ?? type
  throw new PrivateKeyError(`must be an Ed25519 key (EdDSA) or a P-256 key (ES256), not ${name}`)
}

/** PKCS#8 may contain the public key too, and OpenSSL does not compare the two. */
const isConsistent = (key: KeyObject): boolean => {
  const text = Buffer.from('gatehouse')
  return verify(null, text, createPublicKey(key), sign(null, text, key))
}

/** @param text PEM, whose line breaks may be written as `\n`. @throws {PrivateKeyError} */
export const parsePrivateKey = (text: string): PrivateKey => {
  const key = parse(text.replaceAll('\\n', '\n').trim())
  const algorithm = algorithmOf(key)
  if (!isConsistent(key)) throw new PrivateKeyError('is damaged: its public key does not match it')
  return { algorithm, key }
}

const toPem = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString()

export const newPrivateKey = (algorithm: AsymmetricAlgorithm): string =>
  toPem(
    (algorithm === 'EdDSA'
      ? generateKeyPairSync('ed25519')
      : generateKeyPairSync('ec', { namedCurve: CURVES.ES256 })
    ).privateKey,
  )
