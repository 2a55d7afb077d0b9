/** The keys of access tokens (docs/design.md, "Tokens and sessions"): one signs, every one verifies the tokens that name it. */
import { createHash, createHmac, createPublicKey, type KeyObject, sign } from 'node:crypto'
import type { AsymmetricAlgorithm, PrivateKey } from './private-key.ts'
import {
  type PrivateKeySource,
  readExistingPrivateKeys,
  readExistingSecret,
  readPrivateKey,
  readSecret,
  type SecretSource,
} from './secret-file.ts'

export type Algorithm = 'HS256' | AsymmetricAlgorithm

export interface PublicJwk {
  readonly kty: string
  readonly crv: string
  readonly x: string
  /** Only for P-256. */
  readonly y?: string
  readonly kid: string
  readonly alg: AsymmetricAlgorithm
  readonly use: 'sig'
}

/** Of an RSA key, which signs no access tokens. */
export interface RsaPublicJwk {
  readonly kty: 'RSA'
  readonly n: string
  readonly e: string
  readonly kid: string
  readonly alg: 'RS256'
  readonly use: 'sig'
}

export type PublicKey = PublicJwk | RsaPublicJwk

export interface SigningKey {
  /** Names the key in a token's header. Does not reveal a secret. */
  readonly id: string
  readonly algorithm: Algorithm
  /** The secret, or the private key as PEM. */
  readonly signingKey: string
  /** The secret, or the public key as PEM. */
  readonly verificationKey: string
  /** `null`: the key is a secret. */
  readonly publicJwk: PublicJwk | null
}

export interface SigningKeys {
  readonly current: SigningKey
  readonly others: readonly SigningKey[]
}

export const keyOfSecret = (secret: string): SigningKey => ({
  id: createHmac('sha256', secret).update('gatehouse key id').digest('base64url').slice(0, 8),
  algorithm: 'HS256',
  signingKey: secret,
  verificationKey: secret,
  publicJwk: null,
})

/** RFC 7638: the members that define a key, in alphabetical order. Not shortened, so that it identifies the key. */
const thumbprint = ({ crv, kty, x, y }: Pick<PublicJwk, 'crv' | 'kty' | 'x' | 'y'>): string =>
  createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url')

const publicJwkOf = (publicKey: KeyObject, algorithm: AsymmetricAlgorithm): PublicJwk => {
  const { kty = '', crv = '', x = '', y } = publicKey.export({ format: 'jwk' })
  const members = { kty, crv, x, ...(y !== undefined && { y }) }
  return { ...members, kid: thumbprint(members), alg: algorithm, use: 'sig' }
}

export const keyOfPrivateKey = ({ algorithm, key }: PrivateKey): SigningKey => {
  const publicKey = createPublicKey(key)
  const publicJwk = publicJwkOf(publicKey, algorithm)
  return {
    id: publicJwk.kid,
    algorithm,
    signingKey: key.export({ type: 'pkcs8', format: 'pem' }).toString(),
    verificationKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    publicJwk,
  }
}

export interface SigningKeySources {
  readonly signer:
    | { readonly algorithm: 'HS256'; readonly secret: SecretSource }
    | { readonly algorithm: AsymmetricAlgorithm; readonly privateKey: PrivateKeySource }
  readonly secret: SecretSource | null
  readonly secretPrevious: string | null
  readonly privateKey: PrivateKeySource | null
  readonly privateKeyPrevious: PrivateKey | null
}

const isGiven = <Value>(value: Value | null): value is Value => value !== null

/**
 * All keys that are set or were generated, so that a change of the algorithm ends no session, and all instances can accept a key before one
 * signs with it. @throws {Error} when a file cannot be read or created.
 */
export const loadSigningKeys = (sources: SigningKeySources): SigningKeys => {
  const { signer, secret, secretPrevious, privateKey, privateKeyPrevious } = sources
  const current =
    signer.algorithm === 'HS256'
      ? keyOfSecret(readSecret(signer.secret))
      : keyOfPrivateKey(readPrivateKey(signer.privateKey, signer.algorithm))
  const secrets = [secret && readExistingSecret(secret), secretPrevious]
  const privateKeys = [
    ...(privateKey === null ? [] : readExistingPrivateKeys(privateKey)),
    privateKeyPrevious,
  ]
  const all = [
    ...secrets.filter(isGiven).map(keyOfSecret),
    ...privateKeys.filter(isGiven).map(keyOfPrivateKey),
  ]
  const others = new Map(all.map(key => [key.id, key]))
  others.delete(current.id)
  return { current, others: [...others.values()] }
}

/** Signs other things than tokens: nothing that it signs may have the form of a token, which is three parts of base64url. */
export interface Ed25519Signer {
  /** 32 bytes, as base64. */
  readonly publicKey: string
  readonly sign: (data: string) => Buffer
}

/** @returns `null` for a key of another algorithm. */
export const ed25519SignerOf = ({ algorithm, signingKey, publicJwk }: SigningKey): Ed25519Signer | null =>
  algorithm !== 'EdDSA' || publicJwk === null
    ? null
    : {
        publicKey: Buffer.from(publicJwk.x, 'base64url').toString('base64'),
        sign: data => sign(null, Buffer.from(data), signingKey),
      }
