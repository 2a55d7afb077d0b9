/**
 * Proofs of possession (DPoP, RFC 9449): a client signs each request with a key of its own, to which its tokens are bound. A stolen token is
 * useless without the key.
 */
import { createHash, createPublicKey, type KeyObject, timingSafeEqual, verify } from 'node:crypto'
import type { Seal } from './access-tokens.ts'

/** Of proofs. `Ed25519` is another name of `EdDSA` with that curve (RFC 9864 §2.2). */
export const PROOF_ALGORITHMS = ['ES256', 'EdDSA', 'Ed25519'] as const

/** The header of proofs, in lower case. */
export const PROOF_HEADER = 'dpop'

/** The header of responses with a nonce. */
export const NONCE_HEADER = 'dpop-nonce'

/** Characters. */
const MAX_LENGTH = 4_096

/** Milliseconds between the clock of a client and ours. A client whose clock differs more gets a nonce. */
const SKEW = 15_000

/** Milliseconds for which a nonce is valid. */
const NONCE_LIFETIME = 30_000

/** Milliseconds for which a proof must be remembered: as long as it, or its nonce, could be accepted again. */
export const PROOF_MEMORY = 30_000

/** What a proof must be for. */
export interface ProofTarget {
  readonly method: string
  /** The URLs that name the requested one. */
  readonly urls: readonly string[]
  /** The access token that comes with the proof; `null`: none. */
  readonly token: string | null
}

export interface Proof {
  /** The thumbprint of the key (RFC 7638). */
  readonly jkt: string
  /** A digest of the key and `jti`: it is used once. */
  readonly id: string
}

/** `nonce`: the client must try again with a nonce of ours. */
export type ProofProblem = 'invalid' | 'nonce'

type Members = Readonly<Record<string, unknown>>

const objectIn = (part: string): Members | null => {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Members) : null
  } catch {
    return null
  }
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('base64url')

interface ProofKey {
  readonly key: KeyObject
  readonly jkt: string
}

/** @returns `null` for a key that is not of the algorithm, is damaged, or has a private part. */
const keyOf = (jwk: unknown, alg: unknown): ProofKey | null => {
  if (typeof jwk !== 'object' || jwk === null || 'd' in jwk) return null
  try {
    const key = createPublicKey({ key: jwk as Record<string, string>, format: 'jwk' })
    const { crv, kty, x, y } = key.export({ format: 'jwk' })
    if (alg === 'ES256' && crv === 'P-256') return { key, jkt: sha256(JSON.stringify({ crv, kty, x, y })) }
    const isEdwards = (alg === 'EdDSA' || alg === 'Ed25519') && crv === 'Ed25519'
    return isEdwards ? { key, jkt: sha256(JSON.stringify({ crv, kty, x })) } : null
  } catch {
    return null
  }
}

const isSignedBy = ({ key }: ProofKey, alg: unknown, signed: string, signature: string): boolean => {
  const [data, bytes] = [Buffer.from(signed), Buffer.from(signature, 'base64url')]
  if (alg === 'ES256') return verify('sha256', data, { key, dsaEncoding: 'ieee-p1363' }, bytes)
  return verify(null, data, key, bytes)
}

/** Without query and fragment, and normalised (RFC 9449 §4.3); `null` for what is no URL. */
const plainUrl = (url: string): string | null => {
  if (!URL.canParse(url)) return null
  const { origin, pathname } = new URL(url)
  return origin + pathname
}

const isUrlOf = (htu: unknown, urls: readonly string[]): boolean => {
  const url = typeof htu === 'string' ? plainUrl(htu) : null
  return url !== null && urls.some(each => plainUrl(each) === url)
}

export interface ProofsDeps {
  readonly seal: Seal
  /** Now, in milliseconds since the epoch. */
  readonly clock: () => number
}

export class Proofs {
  readonly #deps: ProofsDeps

  constructor(deps: ProofsDeps) {
    this.#deps = deps
  }

  /** A nonce, which every process with the same signing key accepts for 30 seconds. */
  newNonce(): string {
    const expiresAt = this.#deps.clock() + NONCE_LIFETIME
    return `${expiresAt}.${this.#sealOf(expiresAt).toString('base64url')}`
  }

  /** Never throws. @param text the header of the request. @returns what the proof proves, which must not be used twice. */
  verify(text: string, { method, urls, token }: ProofTarget): Proof | ProofProblem {
    const parts = text.split('.')
    if (text.length > MAX_LENGTH || parts.length !== 3) return 'invalid'
    const [encodedHeader = '', encodedClaims = '', signature = ''] = parts
    const [header, claims] = [objectIn(encodedHeader), objectIn(encodedClaims)]
    if (header === null || claims === null) return 'invalid'
    const { typ, alg, jwk, crit } = header
    const { htm, htu, jti, ath } = claims
    if (typ !== 'dpop+jwt' || crit !== undefined || typeof jti !== 'string' || jti === '') return 'invalid'
    if (htm !== method || !isUrlOf(htu, urls)) return 'invalid'
    if (token !== null && ath !== sha256(token)) return 'invalid'
    const key = keyOf(jwk, alg)
    if (key === null || !isSignedBy(key, alg, `${encodedHeader}.${encodedClaims}`, signature))
      return 'invalid'
    if (!this.#isTimely(claims)) return 'nonce'
    return { jkt: key.jkt, id: sha256(JSON.stringify(['proof', key.jkt, jti])) }
  }

  /** A nonce of ours replaces the clock of the client. */
  #isTimely({ iat, nonce }: Members): boolean {
    if (nonce !== undefined) return typeof nonce === 'string' && this.#isNonce(nonce)
    return typeof iat === 'number' && Math.abs(this.#deps.clock() - iat * 1_000) <= SKEW
  }

  #isNonce(nonce: string): boolean {
    const [time = '', mac = ''] = nonce.split('.')
    const expiresAt = /^\d{1,15}$/.test(time) ? Number(time) : 0
    const [given, expected] = [Buffer.from(mac, 'base64url'), this.#sealOf(expiresAt)]
    return (
      this.#deps.clock() < expiresAt && given.length === expected.length && timingSafeEqual(given, expected)
    )
  }

  #sealOf(expiresAt: number): Buffer {
    return this.#deps.seal(`dpop nonce ${expiresAt}`)
  }
}

/** The proofs that a process has seen at its routes. */
export class UsedProofs {
  readonly #clock: () => number
  #current = new Set<string>()
  #former = new Set<string>()
  #since = 0

  constructor(clock: () => number) {
    this.#clock = clock
  }

  /** @returns whether the proof had not been used within {@link PROOF_MEMORY}. */
  use(id: string): boolean {
    const now = this.#clock()
    const passed = now - this.#since
    if (passed >= PROOF_MEMORY || passed < 0) {
      this.#former = passed < 2 * PROOF_MEMORY ? this.#current : new Set()
      this.#current = new Set()
      this.#since = now
    }
    if (this.#current.has(id) || this.#former.has(id)) return false
    this.#current.add(id)
    return true
  }
}
