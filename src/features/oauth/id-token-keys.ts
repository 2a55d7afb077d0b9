/**
 * The keys of ID tokens, one for each algorithm: those of access tokens, and an RSA key, because every client can verify RS256 (OpenID
 * Connect Core §15.1). Further keys are published and sign nothing, so that a key can be replaced.
 */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { promisify } from 'node:util'
import { readOrCreate } from '#core/auth/secret-file'
import type { PublicKey, RsaPublicJwk } from '#core/auth/signing-keys'
import type { ClientTokens } from '#feature/deps'
import { ID_TOKEN_ALGORITHMS, type IdTokenAlgorithm } from './client.ts'
import type { OAuthDeps } from './definitions.ts'
import { newRsaKey, rsaJwkOf, rsaKey } from './rsa-key.ts'

const FILE = 'oauth-rsa'

export interface IdTokenKey {
  readonly algorithm: IdTokenAlgorithm
  readonly publicJwk: PublicKey
  readonly key: KeyObject
}

type KeyDeps = Pick<OAuthDeps, 'settings' | 'keyFile'>

/** The key that signs first. */
const rsaKeys = ({ settings, keyFile }: KeyDeps): readonly KeyObject[] => {
  const file = keyFile(FILE)
  const generated =
    settings.OAUTH_RSA_KEY === null && file !== null ? rsaKey(readOrCreate(file, newRsaKey)) : null
  return [settings.OAUTH_RSA_KEY ?? generated, settings.OAUTH_RSA_KEY_PREVIOUS].filter(key => key !== null)
}

/** The public RSA keys; those of access tokens are published anyway. None with `OAUTH=off`. */
export const publicRsaKeys = (deps: KeyDeps): readonly RsaPublicJwk[] =>
  deps.settings.OAUTH === 'off' ? [] : rsaKeys(deps).map(rsaJwkOf)

const signAsync = promisify(sign)

/** Signs in a thread of Node.js: RSA takes a millisecond. */
const signatureOf = ({ algorithm, key }: IdTokenKey, text: string): Promise<Buffer> =>
  algorithm === 'ES256'
    ? signAsync('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' })
    : signAsync(algorithm === 'RS256' ? 'sha256' : null, Buffer.from(text), key)

/** The type of ID tokens. */
const ID_TOKEN = 'JWT'

const isSignatureOf = ({ algorithm, key }: IdTokenKey, text: string, signature: Buffer): boolean => {
  const options = { key: createPublicKey(key), dsaEncoding: 'ieee-p1363' } as const
  return verify(algorithm === 'EdDSA' ? null : 'sha256', Buffer.from(text), options, signature)
}

const objectIn = (part: string): Readonly<Record<string, unknown>> =>
  Object(JSON.parse(Buffer.from(part, 'base64url').toString()))

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

export class IdTokenKeys {
  readonly #keys = new Map<IdTokenAlgorithm, IdTokenKey>()
  /** Those that sign, and those that are only published. */
  readonly #all: readonly IdTokenKey[]

  /** @param keyPairs of access tokens. */
  constructor(deps: KeyDeps, keyPairs: ClientTokens['keyPairs']) {
    const keys: readonly IdTokenKey[] = [
      ...rsaKeys(deps).map(key => ({ algorithm: 'RS256' as const, publicJwk: rsaJwkOf(key), key })),
      ...keyPairs.flatMap(({ algorithm, publicJwk, signingKey }) =>
        publicJwk === null || algorithm === 'HS256'
          ? []
          : [{ algorithm, publicJwk, key: createPrivateKey(signingKey) }],
      ),
    ]
    this.#all = keys
    for (const key of keys.toReversed()) this.#keys.set(key.algorithm, key)
  }

  get algorithms(): readonly IdTokenAlgorithm[] {
    return ID_TOKEN_ALGORITHMS.filter(algorithm => this.#keys.has(algorithm))
  }

  /**
   * A JWT, whose type is no access token's.
   * @param type of the header. @throws {Error} without a key of the algorithm.
   */
  async sign(
    algorithm: IdTokenAlgorithm,
    claims: object,
    type: typeof ID_TOKEN | 'logout+jwt' = ID_TOKEN,
  ): Promise<string> {
    const key = this.#keys.get(algorithm)
    if (key === undefined) throw new Error(`There is no key to sign ID tokens with ${algorithm}`)
    const text = `${encoded({ alg: algorithm, kid: key.publicJwk.kid, typ: type })}.${encoded(claims)}`
    return `${text}.${(await signatureOf(key, text)).toString('base64url')}`
  }

  /** Never throws. @returns the claims of an ID token that one of the keys has signed, which may have expired; else `null`. */
  verify(token: string): Readonly<Record<string, unknown>> | null {
    const [header = '', claims = '', signature = ''] = token.split('.')
    try {
      const { alg, kid, typ } = objectIn(header)
      const key = this.#all.find(({ algorithm, publicJwk }) => algorithm === alg && publicJwk.kid === kid)
      const isSigned =
        key !== undefined && isSignatureOf(key, `${header}.${claims}`, Buffer.from(signature, 'base64url'))
      return isSigned && typ === ID_TOKEN ? objectIn(claims) : null
    } catch {
      return null
    }
  }
}
