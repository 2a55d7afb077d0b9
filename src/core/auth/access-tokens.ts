/** Access tokens (docs/design.md, "Tokens and sessions"): JWTs of one fixed form. Verifying one identifies a session without the store. */
import { createHmac } from 'node:crypto'
import { createDecoder, createSigner, createVerifier } from 'fast-jwt'
import type { Session } from './session.ts'
import {
  type Algorithm,
  type Ed25519Signer,
  ed25519SignerOf,
  loadSigningKeys,
  type PublicJwk,
  type SigningKey,
  type SigningKeySources,
  type SigningKeys,
} from './signing-keys.ts'

const TYPE = 'at+jwt'

/** `iss` of HS256 tokens. Nobody else can verify them, so it need not lead to the keys. */
const HS256_ISSUER = 'gatehouse'

/** Longer than any token: configuration and features bound the issuer, the audience and the scopes. */
export const MAX_TOKEN_LENGTH = 4_096

interface Times {
  /** Milliseconds since the epoch, whole seconds. */
  readonly issuedAt: number
  readonly expiresAt: number
}

/** The claims of a session's token. */
export interface AccessTokenClaims extends Times {
  readonly userId: string
  readonly sessionId: string
}

/** The claims of a token that was issued to a client of the authorization server (RFC 9068). */
export interface ClientTokenClaims extends Times {
  readonly clientId: string
  /** The id of the user who has granted it; that of the client in a token of its own. */
  readonly subject: string
  /** What the user has granted; `null` in a token of the client's own. */
  readonly grantId: string | null
  readonly tokenId: string
  readonly scopes: readonly string[]
  readonly audience: string
  /** When the user had signed in; `null` in a token of the client's own. */
  readonly authenticatedAt: number | null
  /** The thumbprint of the key that the token is bound to (RFC 9449 §6.1); `null`: it is a bearer token. */
  readonly jkt: string | null
  /** The organization that the token is limited to; `null`: none. */
  readonly organization: string | null
}

export interface TokenNames {
  /** `iss` of tokens that others can verify: the URL of the service. */
  readonly issuer: string
  /** The first is `aud` of new tokens. Tokens for each are accepted. */
  readonly audiences: readonly [string, ...string[]]
}

export interface AccessTokenSettings {
  readonly signingKeys: SigningKeySources
  readonly publicUrl: string
  readonly jwtAudiences: TokenNames['audiences']
}

type Verify = (token: string) => unknown

interface Verifier {
  readonly algorithm: Algorithm
  readonly verify: Verify
}

/** `iss` is not compared: a change of `PUBLIC_URL` must not end sessions. `aud` is, of the claims: other services may use the same key. */
const verifierFor = (key: SigningKey): Verifier => ({
  algorithm: key.algorithm,
  verify: createVerifier({
    key: key.verificationKey,
    algorithms: [key.algorithm],
    checkTyp: TYPE,
    ...(key.algorithm === 'HS256' && { allowedIss: HS256_ISSUER }),
    requiredClaims: ['sub', 'iat', 'exp', 'iss', 'aud'],
    // timesOf and Authenticator check times: the library accepts times that are not finite numbers.
    ignoreExpiration: true,
    cache: false,
  }),
})

const decode = createDecoder({ complete: true })

const SIGNATURE_BYTES = { HS256: 32, EdDSA: 64, ES256: 64 } as const satisfies Record<Algorithm, number>

/** Half of the order of P-256 (SP 800-186 §3.2.1.3), rounded down. */
const HALF_ORDER = Buffer.from('7fffffff800000007fffffffffffffffde737d56d38bcf4279dce5617e3192a8', 'hex')

const signatureOf = (token: string): string => token.slice(token.lastIndexOf('.') + 1)

/** With an ECDSA signature (r, s), (r, n − s) is valid too. The service issues and accepts the one with the lower s. */
const hasLowS = (signature: Buffer): boolean => signature.subarray(32).compare(HALF_ORDER) <= 0

/** One signature has several spellings: in base64url the unused bits of the last character, with ES256 two values of s. One is accepted. */
const hasCanonicalSignature = (token: string, algorithm: Algorithm): boolean => {
  const text = signatureOf(token)
  const signature = Buffer.from(text, 'base64url')
  if (signature.length !== SIGNATURE_BYTES[algorithm] || signature.toString('base64url') !== text)
    return false
  return algorithm !== 'ES256' || hasLowS(signature)
}

const HEADER_MEMBERS = ['alg', 'kid', 'typ']

/** Whether there are no other members: `crit` or `b64` would have to be processed. */
const hasExpectedHeader = (header: Record<string, unknown>): boolean =>
  header.typ === TYPE && Object.keys(header).every(member => HEADER_MEMBERS.includes(member))

const isWholeSecond = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0

type Claims = Readonly<Record<string, unknown>>

/** @returns `null` unless the claims that every token has are those of one. */
const timesOf = ({ sub, iat, exp, iss, aud }: Claims): Times | null => {
  if (typeof sub !== 'string' || typeof iss !== 'string' || typeof aud !== 'string') return null
  if (!isWholeSecond(iat) || !isWholeSecond(exp)) return null
  return { issuedAt: iat * 1_000, expiresAt: exp * 1_000 }
}

const sessionClaimsOf = (claims: Claims, times: Times): AccessTokenClaims | null =>
  typeof claims.sid === 'string' ? { userId: String(claims.sub), sessionId: claims.sid, ...times } : null

/** @returns `undefined` for a confirmation of another kind. */
const jktOf = ({ cnf }: Claims): string | null | undefined => {
  if (cnf === undefined) return null
  const { jkt } = (cnf ?? {}) as { readonly jkt?: unknown }
  return typeof jkt === 'string' ? jkt : undefined
}

const clientClaimsOf = (claims: Claims, times: Times): ClientTokenClaims | null => {
  const { sub, sid = null, client_id: clientId, jti, scope, aud } = claims
  const { auth_time: authTime = null, org = null } = claims
  if (typeof clientId !== 'string' || typeof jti !== 'string' || typeof scope !== 'string') return null
  if (sid !== null && typeof sid !== 'string') return null
  const jkt = jktOf(claims)
  if ((authTime !== null && !isWholeSecond(authTime)) || jkt === undefined) return null
  if (org !== null && typeof org !== 'string') return null
  return {
    clientId,
    subject: String(sub),
    grantId: sid,
    tokenId: jti,
    scopes: scope === '' ? [] : scope.split(' '),
    audience: String(aud),
    authenticatedAt: authTime === null ? null : authTime * 1_000,
    jkt,
    organization: org,
    ...times,
  }
}

type Sign = (payload: Record<string, unknown>) => string

export type Seal = (text: string) => Buffer

const signerFor = ({ id, algorithm, signingKey }: SigningKey): Sign => {
  const sign: Sign = createSigner({
    key: signingKey,
    algorithm,
    kid: id,
    header: { alg: algorithm, typ: TYPE },
  })
  if (algorithm !== 'ES256') return sign
  return payload => {
    // ECDSA signs with a random number. Every second signature has the lower s.
    for (;;) {
      const token = sign(payload)
      if (hasCanonicalSignature(token, algorithm)) return token
    }
  }
}

const headerOf = (token: string): string => token.slice(0, token.indexOf('.'))

/** The claims of a token that was verified. */
const claimsIn = (token: string): Claims =>
  JSON.parse(Buffer.from(token.slice(token.indexOf('.') + 1, token.lastIndexOf('.')), 'base64url').toString())

export const issuedAtIn = (token: string): number => claimsIn(token).iat as number

/** The organization that the token of a grant is limited to; `null`: none. Few routes ask, so no cache has it. */
export const organizationIn = (token: string): string | null => (claimsIn(token).org ?? null) as string | null

/**
 * What precedes the text of a token that came with a proof of possession (RFC 9449 §7.1). Caches have such a text for bound tokens alone, so a
 * bound token that comes as a bearer token is in none.
 */
export const BOUND_PREFIX = 'DPoP '

/** The key that a verified token is bound to. @param text with {@link BOUND_PREFIX}. */
export const boundKeyIn = (text: string): string =>
  JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString()).cnf.jkt

const issuedAtOf = (createdAt: number): number => Math.floor(createdAt / 1_000)

/** Whether they are claims of the session's token. `iat` is not compared with the clock, which may have been set back. */
export const isTokenOf = (
  { userId, issuedAt }: AccessTokenClaims,
  session: Pick<Session, 'userId' | 'createdAt'>,
): boolean => userId === session.userId && issuedAt === issuedAtOf(session.createdAt) * 1_000

export class AccessTokens {
  readonly #sign: Sign
  readonly #sealKey: Buffer
  readonly #issuer: string
  readonly #audiences: TokenNames['audiences']
  readonly #verifiers = new Map<unknown, Verifier>()
  /** By the encoded header of issued tokens, so that it need not be decoded. */
  readonly #verifiersByHeader = new Map<string, Verifier>()
  /** `null` unless the signing key is an Ed25519 key. */
  readonly ed25519Signer: Ed25519Signer | null
  /** The keys with a public part: the one that signs first; empty if all keys are secrets. */
  readonly keyPairs: readonly SigningKey[]

  /** @throws {Error} when the file of a key cannot be read or created. */
  static from({ signingKeys, publicUrl, jwtAudiences }: AccessTokenSettings): AccessTokens {
    return new AccessTokens(loadSigningKeys(signingKeys), { issuer: publicUrl, audiences: jwtAudiences })
  }

  constructor({ current, others }: SigningKeys, { issuer, audiences }: TokenNames) {
    const keys = [current, ...others]
    this.#sign = signerFor(current)
    this.#sealKey = createHmac('sha256', current.signingKey).update('gatehouse seals').digest()
    this.#issuer = current.algorithm === 'HS256' ? HS256_ISSUER : issuer
    this.#audiences = audiences
    this.ed25519Signer = ed25519SignerOf(current)
    this.keyPairs = keys.filter(({ publicJwk }) => publicJwk !== null)
    for (const key of keys) {
      const verifier = verifierFor(key)
      this.#verifiers.set(key.id, verifier)
      this.#verifiersByHeader.set(headerOf(signerFor(key)({})), verifier)
    }
  }

  get publicKeys(): readonly PublicJwk[] {
    return this.keyPairs.flatMap(({ publicJwk }) => publicJwk ?? [])
  }

  issue(session: Pick<Session, 'id' | 'userId' | 'createdAt' | 'expiresAt'>): string {
    return this.#sign({
      sub: session.userId,
      sid: session.id,
      iat: issuedAtOf(session.createdAt),
      exp: session.expiresAt / 1_000,
      iss: this.#issuer,
      aud: this.#audiences[0],
    })
  }

  /** Authenticates a text that is no token: a code that only a process with the signing key can make. */
  readonly seal: Seal = text => createHmac('sha256', this.#sealKey).update(text).digest()

  /** Issues a token to a client of the authorization server. Its times are whole seconds. */
  issueToClient(claims: ClientTokenClaims): string {
    const { grantId, authenticatedAt, jkt, organization } = claims
    return this.#sign({
      sub: claims.subject,
      ...(grantId !== null && { sid: grantId }),
      client_id: claims.clientId,
      jti: claims.tokenId,
      scope: claims.scopes.join(' '),
      ...(authenticatedAt !== null && { auth_time: issuedAtOf(authenticatedAt) }),
      ...(jkt !== null && { cnf: { jkt } }),
      ...(organization !== null && { org: organization }),
      iat: claims.issuedAt / 1_000,
      exp: claims.expiresAt / 1_000,
      iss: this.#issuer,
      aud: claims.audience,
    })
  }

  /** The audience of tokens for this service. */
  get audience(): string {
    return this.#audiences[0]
  }

  /** Whether tokens for an audience are accepted here. */
  isAccepted(audience: string): boolean {
    return this.#audiences.includes(audience)
  }

  /**
   * Never throws.
   * @returns the claims of a token for this service, of exactly the form of those it issues, which may have expired; else `null`.
   */
  verify(token: string): AccessTokenClaims | ClientTokenClaims | null {
    const claims = this.#read(token)
    if (claims === null || !this.isAccepted(claims.aud as string)) return null
    const times = timesOf(claims)
    if (times === null) return null
    return claims.client_id === undefined ? sessionClaimsOf(claims, times) : clientClaimsOf(claims, times)
  }

  /** Never throws. @returns the claims of a client's token for any audience, which may have expired; else `null`. */
  inspect(token: string): ClientTokenClaims | null {
    const claims = this.#read(token)
    const times = claims && timesOf(claims)
    return claims && times && clientClaimsOf(claims, times)
  }

  /** Never throws. @returns the claims of a token that one of the keys has signed; else `null`. */
  #read(token: string): Claims | null {
    if (token.length > MAX_TOKEN_LENGTH) return null
    const { stackTraceLimit } = Error
    // The library throws for every forged token: the stack is a quarter of the cost of such a request.
    Error.stackTraceLimit = 0
    try {
      const verifier = this.#verifiersByHeader.get(headerOf(token)) ?? this.#verifierByDecoding(token)
      if (verifier === undefined || !hasCanonicalSignature(token, verifier.algorithm)) return null
      return verifier.verify(token) as Claims
    } catch {
      // A hostile token can cause any error in the library.
      return null
    } finally {
      Error.stackTraceLimit = stackTraceLimit
    }
  }

  #verifierByDecoding(token: string): Verifier | undefined {
    const { header } = decode(token) as { header: Record<string, unknown> }
    return hasExpectedHeader(header) ? this.#verifiers.get(header.kid) : undefined
  }
}
