/** Proofs of possession (DPoP), as clients make them. */
import { createHash, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto'
import { ISSUER } from './oauth.ts'

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

const sha256 = (text: string): string => createHash('sha256').update(text).digest('base64url')

const KINDS = {
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  EdDSA: () => generateKeyPairSync('ed25519'),
}

interface ProofOptions {
  /** Replaces claims; `undefined` removes one. */
  readonly claims?: object
  readonly header?: object
  /** The token that comes with it. */
  readonly token?: string
  /** Milliseconds since the epoch. */
  readonly now?: number
}

const signed = (key: KeyObject, text: string): string =>
  sign(key.asymmetricKeyType === 'ec' ? 'sha256' : null, Buffer.from(text), {
    key,
    dsaEncoding: 'ieee-p1363',
  }).toString('base64url')

/** A key of a client. */
export const newProofKey = (alg: keyof typeof KINDS = 'ES256') => {
  const { publicKey, privateKey } = KINDS[alg]()
  const jwk = publicKey.export({ format: 'jwk' })
  const { crv, kty, x, y } = jwk
  return {
    jkt: sha256(JSON.stringify(alg === 'ES256' ? { crv, kty, x, y } : { crv, kty, x })),
    privateJwk: privateKey.export({ format: 'jwk' }),
    /** A proof for a request. @param target method and path, such as `POST /oauth/token`. */
    proof(target: string, { claims = {}, header = {}, token, now = Date.now() }: ProofOptions = {}): string {
      const [htm = '', path = ''] = target.split(' ')
      const text = `${encoded({ typ: 'dpop+jwt', alg, jwk, ...header })}.${encoded({
        ...{ htm, htu: ISSUER + path, jti: randomUUID(), iat: Math.floor(now / 1_000) },
        ...(token !== undefined && { ath: sha256(token) }),
        ...claims,
      })}`
      return `${text}.${signed(privateKey, text)}`
    },
  }
}

export type ProofKey = ReturnType<typeof newProofKey>

/** The headers of a request with a bound token. */
export const withProof = (
  key: ProofKey,
  token: string,
  target = 'GET /account',
  options: Omit<ProofOptions, 'token'> = {},
): Record<string, string> => ({
  authorization: `DPoP ${token}`,
  dpop: key.proof(target, { ...options, token }),
})
