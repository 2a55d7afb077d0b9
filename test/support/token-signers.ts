/** Keys of access tokens for tests, and signatures with them that the service did not make. */
import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
} from 'node:crypto'
import { JWT_SECRET } from './build.ts'

export type AsymmetricAlgorithm = 'EdDSA' | 'ES256'

/** A new private key as PKCS#8 PEM. */
export const newPem = (algorithm: AsymmetricAlgorithm): string =>
  (algorithm === 'EdDSA'
    ? generateKeyPairSync('ed25519')
    : generateKeyPairSync('ec', { namedCurve: 'P-256' })
  ).privateKey
    .export({ type: 'pkcs8', format: 'pem' })
    .toString()

export interface TokenSigner {
  readonly algorithm: 'HS256' | AsymmetricAlgorithm
  /** The settings of a service that signs with the same key. */
  readonly env: Record<string, string>
  /** `null`: the key is a secret. */
  readonly publicKey: KeyObject | null
  /** Signs the first two parts of a token. */
  sign(text: string): Buffer
}

/** The order of P-256, and of the subgroup of Ed25519. */
export const ORDERS = {
  ES256: 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n,
  EdDSA: 2n ** 252n + 27742317777372353535851937790883648493n,
}

export const toNumber = (bytes: Buffer): bigint => BigInt(`0x${bytes.toString('hex')}`)

export const toBytes = (number: bigint): Buffer => Buffer.from(number.toString(16).padStart(64, '0'), 'hex')

/** The other of the two ES256 signatures (r, s) and (r, n − s). */
export const otherSignature = (signature: Buffer): Buffer =>
  Buffer.concat([
    signature.subarray(0, 32),
    toBytes(ORDERS.ES256 - toNumber(Buffer.from(signature.subarray(32)))),
  ])

const lowS = (signature: Buffer): Buffer =>
  toNumber(Buffer.from(signature.subarray(32))) > ORDERS.ES256 / 2n ? otherSignature(signature) : signature

export const secretSigner = (secret = JWT_SECRET): TokenSigner => ({
  algorithm: 'HS256',
  env: { JWT_SECRET: secret },
  publicKey: null,
  sign: text => createHmac('sha256', secret).update(text).digest(),
})

export const keySigner = (algorithm: AsymmetricAlgorithm, pem = newPem(algorithm)): TokenSigner => {
  const key = createPrivateKey(pem)
  return {
    algorithm,
    env: { JWT_ALGORITHM: algorithm, JWT_PRIVATE_KEY: pem },
    publicKey: createPublicKey(key),
    sign(text) {
      const bytes = Buffer.from(text)
      return algorithm === 'EdDSA'
        ? sign(null, bytes, key)
        : lowS(sign('sha256', bytes, { key, dsaEncoding: 'ieee-p1363' }))
    },
  }
}
