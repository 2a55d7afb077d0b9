/** Assertions by which clients authenticate, `private_key_jwt` (RFC 7523, OpenID Connect Core §9): signed by their key, each used once. */
import { constants, createHash, type KeyObject, verify } from 'node:crypto'
import { type Client, clientIdOf } from './client.ts'
import type { ClientKey } from './client-keys.ts'

export const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

export const ASSERTION_ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519'] as const

/** Characters. */
const MAX_LENGTH = 8_192

/** Milliseconds by which the clock of a client may differ. */
const SKEW = 60_000

/** Milliseconds: the ids of assertions are kept as long. */
const MAX_LIFETIME = 3_600_000

export interface Assertion {
  readonly clientId: string
  readonly header: Readonly<Record<string, unknown>>
  readonly claims: Readonly<Record<string, unknown>>
  readonly signed: Buffer
  readonly signature: Buffer
}

const objectIn = (part: string): Readonly<Record<string, unknown>> | null => {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'))
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null
  } catch {
    return null
  }
}

/** Reads an assertion, which is not verified yet. @returns `null` if it is not one. */
export const readAssertion = (text: string): Assertion | null => {
  const parts = text.split('.')
  if (text.length > MAX_LENGTH || parts.length !== 3) return null
  const [encodedHeader = '', encodedClaims = '', signature = ''] = parts
  const [header, claims] = [objectIn(encodedHeader), objectIn(encodedClaims)]
  if (header === null || claims === null || typeof claims.sub !== 'string') return null
  return {
    clientId: claims.sub,
    header,
    claims,
    signed: Buffer.from(`${encodedHeader}.${encodedClaims}`),
    signature: Buffer.from(signature, 'base64url'),
  }
}

const isSignedBy = (key: KeyObject, algorithm: unknown, { signed, signature }: Assertion): boolean => {
  if (algorithm === 'EdDSA' || algorithm === 'Ed25519') return verify(null, signed, key, signature)
  if (algorithm === 'ES256') return verify('sha256', signed, { key, dsaEncoding: 'ieee-p1363' }, signature)
  const padding = algorithm === 'PS256' ? constants.RSA_PKCS1_PSS_PADDING : constants.RSA_PKCS1_PADDING
  const saltLength = constants.RSA_PSS_SALTLEN_DIGEST
  return verify('sha256', signed, { key, padding, saltLength }, signature)
}

/** The audience is the issuer alone: an assertion for a token endpoint could be one for another server (CVE-2025-27370). */
const isFor = (aud: unknown, issuer: string): boolean =>
  aud === issuer || (Array.isArray(aud) && aud.length === 1 && aud[0] === issuer)

const isTime = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)

/** @returns when the assertion ends, in milliseconds since the epoch; `null` if its times are not valid. */
const endOf = ({ exp, nbf, iat }: Assertion['claims'], now: number): number | null => {
  if (!isTime(exp)) return null
  const end = exp * 1_000 + SKEW
  if (end <= now || end > now + MAX_LIFETIME + SKEW) return null
  const starts = [nbf, iat].filter(each => each !== undefined)
  return starts.every(each => isTime(each) && each * 1_000 <= now + SKEW) ? end : null
}

export interface AssertionUse {
  /** A digest of the client and `jti`: it is used once. */
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
}

/** Whether one of the keys can have signed an assertion. */
export const hasKeyFor = ({ header: { alg, kid } }: Assertion, keys: readonly ClientKey[]): boolean =>
  keysFor(alg, kid, keys).length > 0

const keysFor = (algorithm: unknown, keyId: unknown, keys: readonly ClientKey[]): readonly ClientKey[] =>
  keys.filter(
    ({ id, algorithms }) => (keyId === undefined || id === keyId) && algorithms.includes(String(algorithm)),
  )

export const isSigned = (assertion: Assertion, keys: readonly ClientKey[]): boolean => {
  const { alg, kid } = assertion.header
  return keysFor(alg, kid, keys).some(({ key }) => isSignedBy(key, alg, assertion))
}

/** @returns `null` unless the assertion is one of the client, for this issuer and for now. Its signature is not verified yet. */
export const readClaims = (
  assertion: Assertion,
  client: Client,
  issuer: string,
  now: number,
): AssertionUse | null => {
  const { header, claims } = assertion
  const { crit } = header
  const { iss, sub, aud, jti } = claims
  const expiresAt = endOf(claims, now)
  if (expiresAt === null || iss !== clientIdOf(client) || sub !== iss || !isFor(aud, issuer)) return null
  if (typeof jti !== 'string' || jti === '' || crit !== undefined) return null
  return {
    id: createHash('sha256')
      .update(JSON.stringify([client.id, jti]))
      .digest('base64url'),
    expiresAt,
  }
}
